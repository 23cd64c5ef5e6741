// The version of the headers, which the build reads from here; the library's own is library_version().
#pragma once

#include <string_view>

namespace finescale {

inline constexpr std::string_view kVersion = "0.1.0";

std::string_view library_version();

}  // namespace finescale
