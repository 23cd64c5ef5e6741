// tests/golden/quantizers.json: what independent implementations write. make_quantizers.py says which, and their versions.
#pragma once

#include "support/quantize_sweep.h"
#include "support/test_directory.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace finescale::test {

struct GoldenCase {
  std::string label;
  QuantizeProblem problem;  // tags, recipe, whether g is given; no pointers
  std::vector<std::uint8_t> values, codes, scales;
  std::uint32_t g = 0;  // bits of the decode global, with GlobalScale::one
};

namespace detail {

inline std::vector<std::uint8_t> from_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint8_t> bytes;
  std::uint32_t word = 0;
  int width = 0;
  for (const char digit : text) {
    if (digit == '=') break;
    word = word << 6 | static_cast<std::uint32_t>(kDigits.find(digit));
    width += 6;
    if (width < 8) continue;
    width -= 8;
    bytes.push_back(static_cast<std::uint8_t>(word >> width));
  }
  return bytes;
}

inline Profile profile_named(std::string_view name) {
  for (const NamedProfile& row : kProfiles) {
    if (row.name == name) return row.profile;
  }
  ADD_FAILURE() << "no profile " << name;
  return Profile::finescale;
}

inline Recipe golden_recipe(const nlohmann::json& c) {
  Recipe recipe{.profile = profile_named(c.at("profile").get<std::string>())};
  const std::string power = c.value("power", "round_up"), search = c.value("search", "max");
  recipe.power = power == "even" ? PowerRule::even : power == "ocp_floor" ? PowerRule::ocp_floor : PowerRule::round_up;
  recipe.search = search == "mse" ? ScaleSearch::mse : search == "four_six" ? ScaleSearch::four_six : ScaleSearch::max;
  if (c.value("rounding", "nearest_even") == "stochastic") recipe.rounding = Rounding::stochastic;
  recipe.pow2 = c.value("pow2", false);
  recipe.seed = c.value("seed", std::uint64_t{0});
  return recipe;
}

}  // namespace detail

inline std::vector<GoldenCase> golden_cases() {
  std::ifstream file(test_directory() + "/golden/quantizers.json");
  const nlohmann::json root = nlohmann::json::parse(file);
  std::vector<GoldenCase> cases;
  for (const auto& c : root.at("cases")) {
    const std::string input_name = c.at("input").get<std::string>();
    const auto& input = root.at("inputs").at(input_name);
    GoldenCase golden;
    golden.label = c.at("profile").get<std::string>() + " " + c.at("format").get<std::string>() + " " + input_name + " case " +
                   std::to_string(cases.size());
    QuantizeProblem& problem = golden.problem;
    problem.from = {.format = *find_format(input.at("from").get<std::string>()), .rows = input.at("rows"), .cols = input.at("cols")};
    problem.to = {.format = *find_format(c.at("format").get<std::string>()), .rows = problem.from.rows, .cols = problem.from.cols};
    problem.to.global_kind = c.at("global") == "one" ? GlobalScale::one : GlobalScale::none;
    problem.global_given = c.value("given", false);
    problem.recipe = detail::golden_recipe(c);
    golden.values = detail::from_base64(input.at("values").get<std::string>());
    golden.codes = detail::from_base64(c.at("codes").get<std::string>());
    golden.scales = detail::from_base64(c.at("scales").get<std::string>());
    golden.g = c.value("g", 0u);
    cases.push_back(std::move(golden));
  }
  return cases;
}

inline testing::AssertionResult equals(const char* what, const std::vector<std::uint8_t>& expected, const GuardedBuffer& actual) {
  if (static_cast<std::int64_t>(expected.size()) != actual.bytes()) {
    return testing::AssertionFailure() << what << ": " << actual.bytes() << " bytes, expected " << expected.size();
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const int got = std::to_integer<int>(actual.data()[i]);
    if (got != expected[i])
      return testing::AssertionFailure() << what << " byte " << i << std::hex << ": expected " << int{expected[i]} << ", got " << got;
  }
  return testing::AssertionSuccess();
}

// One row of the device on one case.
inline void expect_golden(const GoldenCase& golden, const Kernel<QuantizeProblem>& kernel, const Device& device) {
  OwnedMatrix host_from = detail::owned(golden.problem.from), host_to = detail::owned(golden.problem.to);
  ASSERT_EQ(static_cast<std::int64_t>(golden.values.size()), host_from.data().bytes());
  std::memcpy(host_from.data().data(), golden.values.data(), golden.values.size());
  if (golden.problem.global_given) host_to.view().global[0] = bits_float(golden.g);
  const auto from = PlacedMatrix::place(device, std::move(host_from));
  const auto to = PlacedMatrix::place(device, std::move(host_to));
  ASSERT_TRUE(from && to);
  QuantizeProblem problem = golden.problem;
  problem.from = from->view();
  problem.to = to->view();
  const Status status = run_kernel(kernel, problem, device);
  ASSERT_TRUE(status) << status.sentence;
  ASSERT_TRUE(to->fetch(device));
  EXPECT_TRUE(equals("codes", golden.codes, to->host().data()));
  EXPECT_TRUE(equals("scales", golden.scales, to->host().scales()));
  if (problem.to.global_kind == GlobalScale::one && !is_nan(bits_float(golden.g))) {
    EXPECT_EQ(float_bits(to->host().view().global[0]), golden.g);
  }
  EXPECT_TRUE(to->host().guards_intact());
}

// Every row of the device on every case that it takes.
inline void check_golden(const Device& device) {
  SweepReport report;
  for (const GoldenCase& golden : golden_cases()) {
    SCOPED_TRACE(golden.label);
    for_each_kernel(golden.problem, device, report, [&](const Kernel<QuantizeProblem>& kernel) {
      SCOPED_TRACE(std::string(kernel.name));
      expect_golden(golden, kernel, device);
    });
  }
  report.finish();
}

}  // namespace finescale::test
