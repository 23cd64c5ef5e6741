#include <finescale/version.h>

#include <fmt/format.h>

int main() {
  fmt::print("finescale {}\n", finescale::library_version());
  return 0;
}
