// Large files: memory stays bounded by one tensor, a kill and a full disk leave nothing under the final name.
#include "checkpoint/quantize_checkpoint.h"
#include "files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>

namespace finescale::checkpoint {
namespace {

// The child's exit status, or -1 where it ended by a signal; its peak resident memory in bytes.
struct Ending {
  int status = -1, signal = 0;
  std::int64_t peak_bytes = 0;
};

template <class Body>
Ending in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0, std::int64_t{1024} * usage.ru_maxrss};
}

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// A file of `count` plain 2048 x 2048 tensors (16 MiB each), every other of them a linear weight; all zeros, and no room on the disk.
void write_sparse(const fs::path& path, int count) {
  constexpr std::int64_t kBytes = 16 * kMiB;
  std::string json = "{";
  for (int i = 0; i < count; ++i) {
    json += fmt::format("{}\"{}.{}.weight\":{{\"dtype\":\"F32\",\"shape\":[2048,2048],\"data_offsets\":[{},{}]}}", i == 0 ? "" : ",",
                        i % 2 == 0 ? "embed" : "linear", i, i * kBytes, (i + 1) * kBytes);
  }
  write_text(path, safetensors_of(json + "}", ""));
  fs::resize_file(path, fs::file_size(path) + static_cast<std::uintmax_t>(count * kBytes));
}

TEST(Streaming, memory_does_not_grow_with_the_file) {
  if (FINESCALE_SANITIZED) GTEST_SKIP() << "shadow memory is counted too";
  const TemporaryFolder folder;
  constexpr int kTensors = 16;  // 256 MiB
  write_sparse(folder / "in", kTensors);
  const Ending ending = in_child([&] {
    const auto input = Checkpoint::open(folder / "in");
    return input && quantize_checkpoint(*input, folder / "out", {}, {}, cpu()) ? 0 : 1;
  });
  EXPECT_EQ(ending.status, 0);
  EXPECT_GT(fs::file_size(folder / "out"), static_cast<std::uintmax_t>(kTensors / 2 * 18 * kMiB));
  EXPECT_LT(ending.peak_bytes, 96 * kMiB);
}

class Interrupted : public testing::Test {
 protected:
  Interrupted() {
    std::vector<FileTensor> tensors;
    for (int i = 0; i < 8; ++i) tensors.push_back(plain_f32(fmt::format("l.{}.weight", i), 64, 64));
    fs::create_directory(folder_ / "in");
    write_text(folder_ / "in/model.safetensors", safetensors_of(tensors));
  }

  // Quantizes in a child that calls `at` before tensor 4.
  template <class At>
  Ending quantize(const fs::path& from, const fs::path& to, At at) {
    return in_child([&] {
      const auto input = Checkpoint::open(from);
      OutputOptions output;
      output.progress = [&](const Progress& progress) {
        if (progress.index == 4) at();
        return true;
      };
      if (!input) return 2;
      return quantize_checkpoint(*input, to, {}, output, cpu()) ? 0 : 1;
    });
  }

  TemporaryFolder folder_;
};

TEST_F(Interrupted, a_kill_shows_nothing_under_the_final_name) {
  for (const char* from : {"in", "in/model.safetensors"}) {
    const Ending ending = quantize(folder_ / from, folder_ / "out", [] { raise(SIGKILL); });
    EXPECT_EQ(ending.signal, SIGKILL);
    EXPECT_FALSE(fs::exists(folder_ / "out"));
  }
}

TEST_F(Interrupted, a_full_disk_leaves_nothing) {
  for (const char* from : {"in", "in/model.safetensors"}) {
    const Ending ending = quantize(folder_ / from, folder_ / "out", [] {
      signal(SIGXFSZ, SIG_IGN);  // writes past the limit fail, as they do on a full disk
      const rlimit limit{4096, 4096};
      setrlimit(RLIMIT_FSIZE, &limit);
    });
    EXPECT_EQ(ending.status, 1);
    EXPECT_EQ(names_in(folder_.path()), std::vector<std::string>{"in"});
  }
}

TEST_F(Interrupted, without_interruption_it_is_there) {
  EXPECT_EQ(quantize(folder_ / "in", folder_ / "out", [] {}).status, 0);
  EXPECT_TRUE(Checkpoint::open(folder_ / "out"));
}

}  // namespace
}  // namespace finescale::checkpoint
