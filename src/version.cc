#include <finescale/version.h>

namespace finescale {

std::string_view library_version() { return kVersion; }

}  // namespace finescale
