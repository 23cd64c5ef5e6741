// Runs the built command-line tool, and a folder of its own for each test's files.
#pragma once

#include <filesystem>
#include <string>

namespace finescale::cli {

// The exit codes that the manual promises; written out here so that a change of theirs fails a test.
inline constexpr int kOk = 0, kDifferences = 1, kUsage = 2, kFiles = 3, kUnsupported = 4, kDevice = 5, kInternal = 6;

struct Ran {
  int exit = -1;
  std::string out, err;
};

// `arguments` as a shell would read them.
Ran run_cli(const std::string& arguments);

// Removed with all it holds when it goes out of scope.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  bool has(const std::string& name) const { return std::filesystem::exists(path_ / name); }
  // Hidden files included: what a failed command left behind.
  std::size_t count() const;

 private:
  std::filesystem::path path_;
};

std::string read_text(const std::string& path);
void write_text(const std::string& path, const std::string& text);

}  // namespace finescale::cli
