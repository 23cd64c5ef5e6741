// What is printed: the keys of every JSON object, and the sentences that people read.
#include "cli/cli_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace finescale::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

json run_json(const std::string& arguments, const std::string& schema, int exit = kOk) {
  const Ran ran = run_cli(arguments + " --json");
  EXPECT_EQ(ran.exit, exit) << arguments << "\n" << ran.err;
  const json object = json::parse(ran.out, nullptr, false);
  EXPECT_FALSE(object.is_discarded()) << ran.out;
  EXPECT_EQ(object.value("schema", ""), schema);
  EXPECT_TRUE(object.contains("rows") && object["rows"].is_array() && !object["rows"].empty()) << ran.out;
  return object;
}

void expect_keys(const json& row, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) EXPECT_TRUE(row.contains(key)) << key << " is missing in " << row.dump();
}

TEST(Output, check_rows_hold_the_verdict_and_the_place) {
  const json object = run_json("check gemm --m 7 --n 9 --k 33 --kernel all", "finescale.check/1");
  for (const json& row : object["rows"]) {
    expect_keys(row, {"kernel", "ok", "worst", "at", "observed", "exact", "bound", "checked", "outputs"});
    EXPECT_EQ(row["ok"], true);
    EXPECT_GT(row["worst"], 0.0);
    EXPECT_LE(row["worst"], 1.0);
    EXPECT_EQ(row["checked"], 63);
    expect_keys(row["at"], {"batch", "row", "col"});
  }
  EXPECT_EQ(object["rows"].back()["kernel"], "gemm_reference");
  for (const json& row : object["skipped"]) expect_keys(row, {"kernel", "why"});
}

TEST(Output, check_rows_show_a_difference) {
  const json row = run_json("check gemm --m 7 --n 9 --k 33 --inject scale", "finescale.check/1", kDifferences)["rows"][0];
  EXPECT_EQ(row["ok"], false);
  EXPECT_GT(row["worst"], 1.0);
  EXPECT_THAT(row["fault"].get<std::string>(), HasSubstr("scale"));
}

TEST(Output, bench_rows_hold_times_rates_and_the_roofline) {
  const json object = run_json("bench gemv --n 64 --k 128 --seconds 0.01 --threads 1 --kernel all", "finescale.bench/1");
  for (const json& row : object["rows"]) {
    expect_keys(row, {"kernel", "seconds", "gb_per_s", "gflop_per_s", "roofline", "share"});
    EXPECT_GT(row["seconds"], 0.0);
    EXPECT_GT(row["roofline"], 0.0);
    EXPECT_NEAR(row["share"], row["roofline"].get<double>() / row["seconds"].get<double>(), 1e-9);
    EXPECT_NEAR(row["gflop_per_s"], 2e-9 * 64 * 128 / row["seconds"].get<double>(), 1e-6);
  }
  run_json("bench quantize --m 8 --k 64 --seconds 0.01", "finescale.bench/1");
  run_json("bench gemm --m 4 --n 64 --k 64 --seconds 0.01 --cold 1 --in-place", "finescale.bench/1");
  run_json("bench grouped_gemm --m 8 --n 16 --k 64 --seconds 0.01", "finescale.bench/1");
}

TEST(Output, explain_takes_one_kernel_and_says_why_of_each) {
  const json object = run_json("explain gemm --m 4 --n 64 --k 64 --prepared", "finescale.explain/1");
  int taken = 0;
  for (const json& row : object["rows"]) {
    expect_keys(row, {"kernel", "verdict", "why"});
    EXPECT_FALSE(row["why"].get<std::string>().empty());
    taken += row["verdict"] == "taken" ? 1 : 0;
  }
  EXPECT_EQ(taken, 1);
}

TEST(Output, explain_takes_the_forced_kernel) {
  const Ran ran = run_cli("explain gemm --m 4 --n 64 --k 64 --kernel gemm_reference --json");
  EXPECT_EQ(ran.exit, kOk) << ran.err;
  const json object = json::parse(ran.out);
  for (const json& row : object["rows"]) {
    EXPECT_EQ(row["verdict"] == "taken", row["kernel"] == "gemm_reference") << row.dump();
  }
}

TEST(Output, info_lists_the_machine_and_what_is_built_in) {
  const json object = run_json("info", "finescale.info/1");
  EXPECT_EQ(object["rows"][0]["device"], "cpu");
  expect_keys(object["rows"][0], {"model", "isa", "threads"});
  expect_keys(object, {"version", "backends", "formats", "kernels"});
  expect_keys(object["kernels"], {"quantize", "dequantize", "repack", "prepare", "gemm", "grouped_gemm"});
}

TEST(Output, quiet_prints_nothing_and_exits_the_same) {
  for (const auto& [arguments, exit] :
       std::vector<std::pair<std::string, int>>{{"check gemm --m 3 --n 3 --k 20", kOk},
                                                {"check gemm --m 3 --n 3 --k 20 --inject code", kDifferences},
                                                {"explain gemm --m 3 --n 3 --k 20", kOk},
                                                {"bench gemm --m 3 --n 3 --k 20 --seconds 0.01", kOk}}) {
    const Ran ran = run_cli(arguments + " --quiet");
    EXPECT_EQ(ran.exit, exit) << arguments;
    EXPECT_THAT(ran.out + ran.err, IsEmpty());
  }
}

TEST(Output, progress_is_silent_without_a_terminal) { EXPECT_THAT(run_cli("bench gemm --m 3 --n 3 --k 20 --seconds 0.01").err, IsEmpty()); }

TEST(Output, threads_do_not_change_a_verdict) {
  const std::string problem = "check gemm --m 33 --n 65 --k 100 --threads ";
  EXPECT_EQ(run_cli(problem + "1").out, run_cli(problem + "3").out);
}

}  // namespace
}  // namespace finescale::cli
