#include "interrupt.h"

#include <csignal>
#include <initializer_list>

namespace finescale::tools {
namespace {

volatile std::sig_atomic_t g_signal = 0;

extern "C" void ask_to_stop(int signal) { g_signal = signal; }

}  // namespace

void stop_on_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = ask_to_stop;
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    sigaction(signal, &action, nullptr);
  }
}

int stop_signal() { return g_signal; }

}  // namespace finescale::tools
