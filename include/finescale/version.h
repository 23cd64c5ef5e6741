// The version of the headers; the library's own is library_version().
#pragma once

#include <string_view>

namespace finescale {

inline constexpr int kVersionMajor = 0, kVersionMinor = 1, kVersionPatch = 0;
inline constexpr std::string_view kVersion = "0.1.0";

std::string_view library_version();

}  // namespace finescale
