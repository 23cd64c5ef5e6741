// Ends a command that writes files in order when it is interrupted: the first signal asks it to stop, and what it has written so far
// is removed; a second one ends the process at once.
#pragma once

namespace finescale::tools {

// From here on SIGINT, SIGTERM and SIGHUP ask to stop, unless the process was started to ignore them.
void stop_on_signals();

// The signal that asked to stop; 0 if none did.
int stop_signal();

}  // namespace finescale::tools
