// inspect, quantize, dequantize and convert on real weights and on broken files: what is written, and that nothing is on failure.
#include "cli/cli_process.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace finescale::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kWeights = std::string(FINESCALE_TEST_DIRECTORY) + "/data/minilm_query.safetensors";

json rows_of(const Ran& ran) {
  EXPECT_EQ(ran.exit, kOk) << ran.err;
  return json::parse(ran.out, nullptr, false)["rows"];
}

TEST(FileCommands, quantizes_and_reports_the_error_of_each_weight) {
  const Folder folder;
  const json plain = rows_of(run_cli("quantize " + kWeights + " " + folder / "max.safetensors --report --json"));
  const json better = rows_of(run_cli("quantize " + kWeights + " " + folder / "mse.safetensors --scales mse --report --json"));
  ASSERT_EQ(plain.size(), 1u);
  EXPECT_EQ(plain[0]["action"], "quantize");
  EXPECT_GT(plain[0]["relative_rms"], 0.05);
  EXPECT_LT(plain[0]["relative_rms"], 0.12);
  EXPECT_LT(better[0]["relative_rms"], plain[0]["relative_rms"]);
  EXPECT_GE(plain[0]["worst_block"], plain[0]["relative_rms"]);
  EXPECT_FALSE(plain[0]["reason"].get<std::string>().empty());
  EXPECT_EQ(folder.count(), 2u);
}

TEST(FileCommands, converting_there_and_back_keeps_codes_and_scales) {
  const Folder folder;
  const std::string a = folder / "a.safetensors", b = folder / "b.safetensors", c = folder / "c.safetensors";
  ASSERT_EQ(run_cli("quantize " + kWeights + " " + a).exit, kOk);
  ASSERT_EQ(run_cli("convert " + a + " " + b + " --encoding compressed_tensors").exit, kOk);
  ASSERT_EQ(run_cli("convert " + b + " " + c + " --encoding modelopt").exit, kOk);
  ASSERT_EQ(run_cli("dequantize " + a + " " + folder / "a32.safetensors --dtype f32").exit, kOk);
  ASSERT_EQ(run_cli("dequantize " + b + " " + folder / "b32.safetensors --dtype f32").exit, kOk);
  EXPECT_NE(read_text(a), read_text(b));
  EXPECT_EQ(read_text(folder / "a32.safetensors").size(), read_text(folder / "b32.safetensors").size());
  const json inspected = json::parse(run_cli("inspect " + c + " --json").out);
  EXPECT_EQ(inspected["weights"][0]["encoding"], "modelopt");
  EXPECT_EQ(inspected["weights"][0]["format"], "nvfp4");
}

TEST(FileCommands, never_overwrites_without_force) {
  const Folder folder;
  const std::string out = folder / "out.safetensors";
  write_text(out, "mine");
  for (const std::string& command : {"quantize " + kWeights + " " + out, "dequantize " + kWeights + " " + out,
                                     "convert " + kWeights + " " + out + " --encoding modelopt"}) {
    const Ran ran = run_cli(command);
    EXPECT_EQ(ran.exit, kFiles) << command;
    EXPECT_THAT(ran.err, HasSubstr("--force"));
    EXPECT_EQ(read_text(out), "mine");
  }
  EXPECT_EQ(run_cli("quantize " + kWeights + " " + out + " --force").exit, kOk);
  EXPECT_NE(read_text(out), "mine");
}

TEST(FileCommands, a_dry_run_writes_nothing) {
  const Folder folder;
  const Ran ran = run_cli("quantize " + kWeights + " " + folder / "out.safetensors --dry-run");
  EXPECT_EQ(ran.exit, kOk);
  EXPECT_THAT(ran.out, HasSubstr("nothing was written"));
  EXPECT_EQ(folder.count(), 0u);
}

TEST(FileCommands, globs_choose_what_is_quantized) {
  const Folder folder;
  const std::string command = "quantize " + kWeights + " " + folder / "out.safetensors --dry-run --json";
  EXPECT_EQ(rows_of(run_cli(command + " --exclude '*query*'"))[0]["action"], "copy");
  EXPECT_EQ(rows_of(run_cli(command + " --exclude '*query*' --include '*.self.query'"))[0]["action"], "quantize");
}

TEST(FileCommands, profiles_make_other_bytes) {
  const Folder folder;
  ASSERT_EQ(run_cli("quantize " + kWeights + " " + folder / "a --profile modelopt").exit, kOk);
  ASSERT_EQ(run_cli("quantize " + kWeights + " " + folder / "b --scales four_six").exit, kOk);
  EXPECT_NE(read_text(folder / "a"), read_text(folder / "b"));
}

// Eight bytes of length, then the header, then `data` zero bytes.
std::string file_of(const std::string& header, std::size_t data) {
  std::string text;
  for (int byte = 0; byte < 8; ++byte) text += static_cast<char>(header.size() >> (8 * byte));
  return text + header + std::string(data, '\0');
}

TEST(FileCommands, broken_files_are_refused_and_leave_nothing) {
  const std::string whole = read_text(kWeights);
  const std::string lying = R"({"a.weight":{"dtype":"F32","shape":[4,4],"data_offsets":[0,4]}})";
  const std::string twice = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  const std::string hole = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})";
  for (const std::string& text : {std::string(), std::string("short"), whole.substr(0, 100), whole.substr(0, whole.size() - 1), whole + "x",
                                  std::string(64, '\xFF'), file_of(lying, 4), file_of(twice, 4), file_of(hole, 8), file_of("[]", 0)}) {
    const Folder folder;
    const std::string in = folder / "in.safetensors", out = folder / "out.safetensors";
    write_text(in, text);
    for (const std::string& command : {"inspect " + in, "quantize " + in + " " + out, "dequantize " + in + " " + out,
                                       "convert " + in + " " + out + " --encoding modelopt", "check gemm --tensors " + in}) {
      const Ran ran = run_cli(command);
      EXPECT_EQ(ran.exit, kFiles) << command << " of " << text.size() << " bytes\n" << ran.out;
      EXPECT_THAT(ran.err, HasSubstr("finescale: "));
      EXPECT_THAT(ran.out, IsEmpty());
    }
    EXPECT_EQ(folder.count(), 1u);
  }
}

TEST(FileCommands, a_weight_with_a_nan_is_refused_by_name) {
  const Folder folder;
  const std::string in = folder / "in.safetensors", out = folder / "out.safetensors";
  std::string text = file_of(R"({"layer.proj.weight":{"dtype":"F32","shape":[2,16],"data_offsets":[0,128]}})", 128);
  text.replace(text.size() - 4, 4, "\x00\x00\xC0\x7F", 4);
  write_text(in, text);
  const Ran ran = run_cli("quantize " + in + " " + out);
  EXPECT_EQ(ran.exit, kFiles);
  EXPECT_THAT(ran.err, HasSubstr("layer.proj.weight"));
  EXPECT_EQ(folder.count(), 1u);
  EXPECT_EQ(run_cli("quantize " + in + " " + out + " --allow-nonfinite").exit, kOk);
  EXPECT_EQ(run_cli("inspect " + out + " --strict").exit, kDifferences);  // its block scale is NaN
}

TEST(FileCommands, inspect_finds_nothing_in_what_we_write) {
  const Folder folder;
  for (const char* encoding : {"modelopt", "compressed_tensors"}) {
    ASSERT_EQ(run_cli("quantize " + kWeights + " " + folder / encoding + " --encoding " + encoding).exit, kOk);
    const Ran ran = run_cli("inspect " + folder / encoding + " --strict");
    EXPECT_EQ(ran.exit, kOk) << ran.out;
    EXPECT_THAT(ran.out, HasSubstr("nothing looks wrong"));
  }
}

// A name is data: it may hold what a terminal would obey.
TEST(FileCommands, control_characters_of_names_are_shown_as_numbers) {
  const Folder folder;
  const std::string in = folder / "in.safetensors";
  write_text(in, file_of(R"({"a\u001b[2J\n\u009b.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})", 16));
  for (const std::string& command : {"inspect " + in, "quantize " + in + " " + folder / "out.safetensors"}) {
    const Ran ran = run_cli(command);
    EXPECT_EQ(ran.exit, kOk) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("a\\x1B[2J\\x0A\\x9B.weight"));
  }
  write_text(in, file_of(R"({"a\u001b[2J":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4));
  EXPECT_THAT(run_cli("inspect " + in).err, HasSubstr("a\\x1B[2J"));
}

TEST(FileCommands, force_replaces_files_only) {
  const Folder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const Ran ran = run_cli("quantize " + kWeights + " " + pipe + " --force");
  EXPECT_EQ(ran.exit, kFiles);
  EXPECT_THAT(ran.err, HasSubstr("not a regular file"));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_EQ(folder.count(), 1u);
}

TEST(FileCommands, weights_left_aside_are_told_and_never_lost_in_place) {
  const Folder folder;
  const std::string model = folder / "model", other = model + "/other/part.safetensors";
  std::filesystem::create_directories(model + "/other");
  std::filesystem::copy(kWeights, model + "/model.safetensors");
  std::filesystem::copy(kWeights, other);
  EXPECT_THAT(run_cli("quantize " + model + " " + folder / "out --dry-run").out, HasSubstr("other/part.safetensors"));
  const Ran ran = run_cli("quantize " + model + " " + model + " --force");
  EXPECT_EQ(ran.exit, kFiles);
  EXPECT_THAT(ran.err, HasSubstr("other/part.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(other));
  std::filesystem::remove(other);
  EXPECT_EQ(run_cli("quantize " + model + " " + model + " --force").exit, kOk);
}

TEST(FileCommands, a_file_size_limit_is_a_failed_write) {
  const Folder folder;
  const std::string shell = "( ulimit -f 16; " + std::string(FINESCALE_CLI) + " quantize " + kWeights + " " + folder / "out" + " 2>&1 )";
  EXPECT_EQ(std::system((shell + " | grep -q 'cannot write'").c_str()), 0);
  EXPECT_EQ(folder.count(), 0u);
}

// The signal comes as soon as the unfinished file is there: most of the tensors are still to be written.
TEST(FileCommands, a_signal_leaves_nothing_behind) {
  const Folder folder;
  std::string header = "{";
  constexpr int kTensors = 4000;
  for (int i = 0; i < kTensors; ++i) {
    header += fmt::format(R"({}"{}.weight":{{"dtype":"F32","shape":[64,64],"data_offsets":[{},{}]}})", i == 0 ? "" : ",", i, i * 16384,
                          (i + 1) * 16384);
  }
  const std::string in = folder / "in.safetensors", out = folder / "out.safetensors";
  write_text(in, file_of(header + "}", std::size_t{kTensors} * 16384));
  const std::string command = std::string(FINESCALE_CLI) + " quantize " + in + " " + out + " --quiet --scales mse 2>/dev/null";
  const std::string shell = command + " & p=$!; while ! ls -A " + folder / "" +
                            " | grep -q partial; do kill -0 $p || exit 9; done; kill -TERM $p; wait $p; [ $? = 143 ]";
  EXPECT_EQ(std::system(shell.c_str()), 0);
  EXPECT_EQ(folder.count(), 1u);
}

TEST(FileCommands, output_that_cannot_be_written_is_a_failure) {
  const std::string tool(FINESCALE_CLI);
  for (const std::string& command :
       {std::string("explain gemm --m 1 --n 1 --k 1 --json"), std::string("--version"), "inspect " + kWeights}) {
    const int status = std::system((tool + " " + command + " >/dev/full 2>/dev/null").c_str());
    EXPECT_EQ(WEXITSTATUS(status), kFiles) << command;
  }
  // Streams that the caller closed are no file descriptors for the tool's own files.
  const Folder folder;
  const int status = std::system((tool + " quantize " + kWeights + " " + folder / "out" + " <&- >&- 2>&-").c_str());
  EXPECT_EQ(WEXITSTATUS(status), kOk);
  EXPECT_EQ(run_cli("inspect --strict " + folder / "out").exit, kOk);
  EXPECT_EQ(WEXITSTATUS(std::system((tool + " inspect " + folder / "nothing" + " 2>&-").c_str())), kFiles);
}

TEST(FileCommands, products_are_checked_with_the_weights_of_a_checkpoint) {
  const Folder folder;
  const std::string weights = folder / "weights.safetensors";
  ASSERT_EQ(run_cli("quantize " + kWeights + " " + weights).exit, kOk);
  for (const char* problem : {"gemm --m 5", "gemv --prepared", "gemm --m 5 --a nvfp4 --scale-layout scale_128x4 --gate halves_up_first",
                              "grouped_gemm --m 20 --a nvfp4 --prepared"}) {
    const std::string check = std::string("check ") + problem + " --weights " + weights;
    EXPECT_EQ(run_cli(check + " --kernel all").exit, kOk) << problem;
    EXPECT_EQ(run_cli(check + " --inject scale").exit, kDifferences) << problem;
  }
  EXPECT_EQ(run_cli("check gemm --m 5 --k 384 --weights " + weights).exit, kUsage);
  EXPECT_EQ(run_cli("check gemm --m 5 --module '*.key' --weights " + weights).exit, kUsage);
  EXPECT_EQ(run_cli("check gemm --m 5 --weights " + kWeights).exit, kUsage);  // it holds no quantized weight
}

}  // namespace
}  // namespace finescale::cli
