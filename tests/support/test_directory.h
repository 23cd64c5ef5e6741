// Where the files of the tests lie: the source tree of the build, or FINESCALE_TEST_DIRECTORY where a test program runs on
// another machine than it was built on.
#pragma once

#include <cstdlib>
#include <string>

namespace finescale::test {

inline std::string test_directory() {
  const char* elsewhere = std::getenv("FINESCALE_TEST_DIRECTORY");
  return elsewhere != nullptr ? elsewhere : FINESCALE_TEST_DIRECTORY;
}

}  // namespace finescale::test
