// Runs a fuzz target over the files and folders of its arguments, and over every truncation and single-bit flip of the small ones.
#include "fuzz_target.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The target gets an allocation of exactly its size, so that a sanitizer sees a read past the end.
void run(std::vector<std::uint8_t> input) { LLVMFuzzerTestOneInput(input.data(), input.size()); }

int run_with_damage(const std::vector<std::uint8_t>& input) {
  constexpr std::size_t kMostDamaged = 4096;
  int executions = 1;
  run(input);
  for (std::size_t byte = 0; byte < std::min(input.size(), kMostDamaged); ++byte) {
    run({input.begin(), input.begin() + static_cast<std::ptrdiff_t>(byte)});
    std::vector<std::uint8_t> flipped = input;
    flipped[byte] = static_cast<std::uint8_t>(flipped[byte] ^ 1u << (byte % 8));
    run(std::move(flipped));
    executions += 2;
  }
  return executions;
}

}  // namespace

int main(int count, char** arguments) {
  int files = 0, executions = 0;
  for (int i = 1; i < count; ++i) {
    for (const fs::path& path : files_of(arguments[i])) {
      std::ifstream file(path, std::ios::binary);
      executions += run_with_damage({std::istreambuf_iterator<char>(file), {}});
      ++files;
    }
  }
  std::printf("%d files, %d executions\n", files, executions);
  return files == 0 ? 1 : 0;
}
