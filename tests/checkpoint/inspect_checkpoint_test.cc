// inspect: each suspicious thing is found, and a good file is left in peace.
#include "checkpoint/inspect_checkpoint.h"
#include "files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace finescale::checkpoint {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kWeightsOnly =
    R"({"quantization_config":{"quant_method":"modelopt","quant_algo":"W4A16_NVFP4","ignore":["lm_head"]}})";
constexpr const char* kBoth = R"({"quantization_config":{"quant_method":"modelopt","quant_algo":"NVFP4","ignore":["lm_head"]}})";

std::vector<Finding> findings(const std::vector<FileTensor>& tensors, const char* config = kWeightsOnly) {
  const std::string file = safetensors_of(tensors);
  const auto checkpoint = Checkpoint::view(as_bytes(file), {{kConfigFile, config}});
  EXPECT_TRUE(checkpoint) << checkpoint.status().sentence;
  const auto inspection = inspect_checkpoint(*checkpoint);
  EXPECT_TRUE(inspection) << inspection.status().sentence;
  return inspection->findings;
}

auto finding(Severity severity, const char* tensor, const char* part) {
  return AllOf(Field(&Finding::severity, severity), Field(&Finding::tensor, tensor), Field(&Finding::sentence, HasSubstr(part)));
}

TEST(Inspect, a_good_checkpoint_has_no_findings) { EXPECT_THAT(findings(modelopt_weight("a.down_proj", 2, 32, 0.001f)), IsEmpty()); }

TEST(Inspect, counts_scales) {
  auto tensors = modelopt_weight("a", 2, 64, 0.001f);
  tensors[1].bytes = std::string("\x7F\xFF\x80\x00\xB8\x00\x08\x70", 8);
  tensors[0].bytes.replace(24, 8, std::string(8, '\x08'));  // the block of the last zero scale: codes +0 and -0 only
  tensors[0].bytes.replace(40, 8, std::string(8, '\0'));
  const std::string file = safetensors_of(tensors);
  const auto checkpoint = Checkpoint::view(as_bytes(file), {{kConfigFile, kWeightsOnly}});
  const auto inspection = inspect_checkpoint(*checkpoint);
  FINESCALE_ASSERT_OK(inspection);
  const ScaleFacts& facts = inspection->weights.at(0).scales;
  EXPECT_EQ(facts.nan, 2);
  EXPECT_EQ(facts.negative, 2);  // -0 and -1
  EXPECT_EQ(facts.zero, 3);
  EXPECT_EQ(facts.zero_with_codes, 1);
  EXPECT_EQ(facts.smallest, 0x1p-6f);
  EXPECT_EQ(facts.largest, 128.0f);
  EXPECT_THAT(inspection->findings, ElementsAre(finding(Severity::suspicious, "a.weight_scale", "2 block scales are NaN"),
                                                finding(Severity::suspicious, "a.weight_scale", "2 block scales have the sign bit"),
                                                finding(Severity::suspicious, "a.weight_scale", "1 block scales are zero")));
}

TEST(Inspect, a_module_in_two_encodings) {
  auto tensors = modelopt_weight("a", 2, 32, 0.001f);
  tensors.push_back({"a.weight_packed", "U8", {2, 16}, tensors[0].bytes});
  tensors.push_back({"a.weight_global_scale", "F32", {1}, std::string("\0\0\x7A\x44", 4)});  // 1000
  EXPECT_THAT(findings(tensors, "{}"), Contains(finding(Severity::suspicious, "a", "stored twice, as a.weight and as a.weight_packed")));
}

TEST(Inspect, global_scales_that_cannot_be) {
  for (const float g : {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THAT(findings(modelopt_weight("a", 1, 16, g)), ElementsAre(finding(Severity::suspicious, "a.weight_scale_2", "greater than 0")))
        << g;
  }
  EXPECT_THAT(findings(modelopt_weight("a", 1, 16, 3584)),
              ElementsAre(finding(Severity::suspicious, "a.weight_scale_2", "as this encoding's multiplier")));
  EXPECT_THAT(findings(packed_weight("a", 1, 16, 1.0f / 3584), R"({"quantization_config":{"quant_method":"compressed-tensors"}})"),
              ElementsAre(finding(Severity::suspicious, "a.weight_global_scale", "as this encoding's divisor")));
}

TEST(Inspect, siblings_that_differ) {
  EXPECT_THAT(findings(modelopt_weight("l.0.gate_proj", 1, 16, 0.25f) + modelopt_weight("l.0.up_proj", 1, 16, 0.0625f)),
              ElementsAre(finding(Severity::suspicious, "l.0.up_proj", "gate_proj")));
  EXPECT_THAT(findings(modelopt_weight("l.0.gate_proj", 1, 16, 0.25f) + modelopt_weight("l.1.up_proj", 1, 16, 0.0625f)), IsEmpty());
}

TEST(Inspect, missing_input_scales) {
  EXPECT_THAT(findings(modelopt_weight("a", 1, 16, 0.25f), kBoth), ElementsAre(finding(Severity::suspicious, "a", "no input_scale")));
  const std::vector<FileTensor> scale = {{"a.input_scale", "F32", {}, raw_f32(0.5f)}}, zero = {{"a.input_scale", "F32", {}, raw_f32(0)}};
  EXPECT_THAT(findings(modelopt_weight("a", 1, 16, 0.25f) + scale, kBoth), IsEmpty());
  EXPECT_THAT(findings(modelopt_weight("a", 1, 16, 0.25f) + zero, kBoth),
              ElementsAre(finding(Severity::suspicious, "a.input_scale", "greater than 0")));
}

TEST(Inspect, partial_blocks_are_mentioned) {
  EXPECT_THAT(findings(modelopt_weight("a", 1, 24, 0.25f)), ElementsAre(finding(Severity::mention, "a.weight", "holds 8 elements")));
}

TEST(Inspect, metadata_that_contradicts_what_is_stored) {
  const auto weights = modelopt_weight("a", 1, 16, 0.25f);
  EXPECT_THAT(findings(weights + modelopt_weight("lm_head", 1, 16, 0.25f)),
              ElementsAre(finding(Severity::suspicious, "lm_head", "excludes it")));
  EXPECT_THAT(findings(weights + std::vector<FileTensor>{plain_f32("b.weight", 1, 16)}),
              ElementsAre(finding(Severity::suspicious, "b.weight", "1 linear weights are stored plain")));
  EXPECT_THAT(findings(weights, R"({"quantization_config":{"quant_method":"mxfp4"}})"),
              Contains(finding(Severity::suspicious, "a.weight", "\"mxfp4\"")));
  EXPECT_THAT(findings(weights, "{}"), ElementsAre(finding(Severity::mention, "", "no quantization config")));
}

TEST(Inspect, modifiers_and_unread_tensors) {
  EXPECT_THAT(
      findings(modelopt_weight("a", 1, 16, 0.25f) +
               std::vector<FileTensor>{{"a.pre_quant_scale", "F32", {16}, std::string(64, '\0')}, {"b.weight", "F8_E4M3", {1, 1}, "8"}}),
      ElementsAre(finding(Severity::suspicious, "b.weight", "F8_E4M3"), finding(Severity::mention, "a.pre_quant_scale", "not applied")));
}

}  // namespace
}  // namespace finescale::checkpoint
