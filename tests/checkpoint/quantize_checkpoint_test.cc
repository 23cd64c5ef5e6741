// quantize_checkpoint: which tensors are taken, what they share, what is written, what is refused.
#include "checkpoint/quantize_checkpoint.h"
#include "checkpoint/dequantize_checkpoint.h"
#include "checkpoint/tensor_names.h"
#include "checkpoint/tensor_scan.h"
#include "files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

namespace finescale::checkpoint {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(TensorNames, globs) {
  EXPECT_TRUE(glob_match("*.q_proj", "model.layers.0.q_proj"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("a*b*c", "a.x.b.b.c"));
  EXPECT_TRUE(glob_match("layers.?.w", "layers.7.w"));
  EXPECT_FALSE(glob_match("layers.?.w", "layers.17.w"));
  EXPECT_FALSE(glob_match("q_proj", "model.q_proj"));
  EXPECT_FALSE(glob_match("", "a"));
  const std::string stars = [] {
    std::string text;
    for (int i = 0; i < 1000; ++i) text += "*a";
    return text;
  }();
  EXPECT_FALSE(glob_match(stars, std::string(900, 'a')));  // in no exponential time
}

TEST(TensorNames, linear_weights_by_name) {
  for (const char* name : {"model.embed_tokens.weight", "lm_head.weight", "model.norm.weight", "layers.0.input_layernorm.weight",
                           "mlp.gate.weight", "block.router.weight", "embeddings.word_embeddings.weight", "router_probe.weight"}) {
    EXPECT_FALSE(not_linear_part(name).empty()) << name;
  }
  for (const char* name : {"layers.0.mlp.gate_proj.weight", "encoder.layer.0.attention.self.query.weight", "w1.weight", "gated.weight",
                           "pooler.dense.weight"}) {
    EXPECT_TRUE(not_linear_part(name).empty()) << name;
  }
}

TEST(TensorNames, fused_siblings_have_one_key) {
  EXPECT_EQ(fusion_key("a.0.q_proj"), fusion_key("a.0.v_proj"));
  EXPECT_EQ(fusion_key("a.0.query"), fusion_key("a.0.key"));
  EXPECT_EQ(fusion_key("a.0.gate_proj"), fusion_key("a.0.up_proj"));
  EXPECT_EQ(fusion_key("e.3.w1"), fusion_key("e.3.w3"));
  EXPECT_NE(fusion_key("a.0.q_proj"), fusion_key("a.1.q_proj"));
  EXPECT_NE(fusion_key("e.3.w1"), fusion_key("e.3.w2"));
  EXPECT_NE(fusion_key("a.0.q_proj"), fusion_key("a.0.o_proj"));
}

TEST(TensorScan, finds_amax_and_what_is_not_finite) {
  std::vector<float> values(10'000, 0.5f);
  values[17] = -3.0f;
  values[9'000] = std::numeric_limits<float>::quiet_NaN();
  values[9'999] = -std::numeric_limits<float>::infinity();
  const std::string bytes = raw(values);
  const ElementFacts facts = scan_elements(Dtype::f32, as_bytes(bytes));
  EXPECT_EQ(facts.amax, 3.0f);
  EXPECT_EQ(facts.nonfinite, 2);
  EXPECT_EQ(facts.first_nonfinite, 9'000);
  const std::string halves = raw(std::vector<std::uint16_t>{0x0001, 0xFBFF, 0x7C00, 0x7E00});
  EXPECT_EQ(scan_elements(Dtype::f16, as_bytes(halves)).amax, 65504.0f);
  EXPECT_EQ(scan_elements(Dtype::f16, as_bytes(halves)).nonfinite, 2);
  EXPECT_EQ(scan_elements(Dtype::bf16, as_bytes(halves)).nonfinite, 0);
  EXPECT_EQ(scan_elements(Dtype::f32, {}).amax, 0.0f);
}

class QuantizeCheckpoint : public testing::Test {
 protected:
  // Writes a file, plans and quantizes it; the result stays open.
  void quantize(const std::vector<FileTensor>& tensors, const QuantizeCheckpointOptions& options = {}) {
    fs::remove(folder_ / "out");
    write_text(folder_ / "in", safetensors_of(tensors, R"({"format":"pt"})"));
    input_.emplace(*Checkpoint::open(folder_ / "in"));
    report_.emplace(quantize_checkpoint(*input_, folder_ / "out", options, {}, device_));
    if (*report_) output_.emplace(*Checkpoint::open(folder_ / "out"));
  }

  const PlannedTensor& planned(std::string_view name) const {
    for (const PlannedTensor& tensor : (*report_)->plan.tensors) {
      if (tensor.source->name == name) return tensor;
    }
    ADD_FAILURE() << name << " is not in the plan";
    return (*report_)->plan.tensors.front();
  }

  float scalar(const std::string& name) const { return floats_of(*output_->find(name)).at(0); }

  Device device_ = cpu();
  TemporaryFolder folder_;
  std::optional<Checkpoint> input_, output_;
  std::optional<Result<QuantizeCheckpointReport>> report_;
};

TEST_F(QuantizeCheckpoint, writes_the_golden_bytes) {
  const auto input = Checkpoint::open(golden("plain.safetensors"));
  FINESCALE_ASSERT_OK(input);
  for (const Encoding* encoding : encodings()) {
    const fs::path out = folder_ / std::string(encoding->name);
    const auto report = quantize_checkpoint(*input, out, {.encoding = encoding}, {}, device_);
    FINESCALE_ASSERT_OK(report);
    const auto output = Checkpoint::open(out), expected = Checkpoint::open(golden(fmt::format("{}.safetensors", encoding->name)));
    FINESCALE_ASSERT_OK(output);
    FINESCALE_ASSERT_OK(expected);
    expect_equal_tensors(*expected, *output);
    EXPECT_EQ(report->plan.notes.size(), encoding->divides ? 1u : 0u);
    const auto recognition = recognize(*output);
    FINESCALE_ASSERT_OK(recognition);
    EXPECT_EQ(recognition->weights.size(), 5u);
    EXPECT_THAT(recognition->notes, IsEmpty());  // __metadata__ declares the encoding
    EXPECT_EQ(output->shard_metadata(0).at("format"), "pt");
  }
}

TEST_F(QuantizeCheckpoint, takes_linear_weights_and_copies_the_rest) {
  quantize({plain_f32("model.embed_tokens.weight", 4, 16),
            plain_f32("model.layers.0.mlp.down_proj.weight", 4, 16),
            plain_f32("model.layers.0.mlp.down_proj.bias", 1, 16),
            plain_f32("model.layers.0.mlp.gate.weight", 4, 16),
            plain_f32("lm_head.weight", 4, 16),
            {"model.norm.weight", "BF16", {2}, "abcd"},
            {"conv.weight", "F32", {1, 1, 16}, raw(std::vector<float>(16, 1.0f))},
            {"ids.weight", "I32", {1, 16}, raw(std::vector<float>(16, 1.0f))},
            {"none.weight", "F32", {0, 16}, ""},
            plain_f32("odd.weight", 2, 15),
            plain_f32("partial.weight", 2, 24)});
  FINESCALE_ASSERT_OK(*report_);
  EXPECT_EQ((*report_)->plan.count(Action::quantize), 2);
  EXPECT_EQ(planned("model.layers.0.mlp.down_proj.weight").reason, "linear weight");
  EXPECT_THAT(planned("model.embed_tokens.weight").reason, HasSubstr("embed_tokens"));
  EXPECT_THAT(planned("model.layers.0.mlp.down_proj.bias").reason, HasSubstr("not named *.weight"));
  EXPECT_THAT(planned("model.layers.0.mlp.gate.weight").reason, HasSubstr("part gate"));
  EXPECT_THAT(planned("conv.weight").reason, HasSubstr("rank 3"));
  EXPECT_THAT(planned("ids.weight").reason, HasSubstr("I32"));
  EXPECT_THAT(planned("none.weight").reason, HasSubstr("empty"));
  EXPECT_THAT(planned("odd.weight").reason, HasSubstr("K = 15 is odd"));
  EXPECT_THAT(planned("partial.weight").reason, HasSubstr("partial block"));
  for (const PlannedTensor& tensor : (*report_)->plan.tensors) {
    if (tensor.action != Action::copy) continue;
    const Tensor* copied = output_->find(tensor.source->name);
    ASSERT_NE(copied, nullptr) << tensor.source->name;
    EXPECT_EQ(bytes_of(*copied), bytes_of(*tensor.source)) << tensor.source->name;
  }
  EXPECT_EQ(output_->find("partial.weight_scale")->shape, (Shape{2, 2}));
  EXPECT_EQ(output_->find("model.layers.0.mlp.down_proj.weight")->shape, (Shape{4, 8}));
}

TEST_F(QuantizeCheckpoint, patterns_include_before_they_exclude) {
  const std::vector<FileTensor> tensors = {plain_f32("a.weight", 1, 16), plain_f32("b.weight", 1, 16), plain_f32("lm_head.weight", 1, 16)};
  quantize(tensors, {.include = {"lm_head"}, .exclude = {"b.weight", "typo*"}});
  FINESCALE_ASSERT_OK(*report_);
  EXPECT_EQ(planned("a.weight").action, Action::quantize);
  EXPECT_EQ(planned("b.weight").action, Action::copy);
  EXPECT_EQ(planned("lm_head.weight").action, Action::quantize);
  EXPECT_THAT((*report_)->plan.notes, ElementsAre(HasSubstr("typo*")));
  quantize(tensors, {.include = {"b"}, .exclude = {"*"}});
  FINESCALE_ASSERT_OK(*report_);
  EXPECT_EQ((*report_)->plan.count(Action::quantize), 1);
  EXPECT_EQ(planned("b.weight").action, Action::quantize);
}

TEST_F(QuantizeCheckpoint, siblings_share_the_global_scale_of_their_largest) {
  const std::vector<FileTensor> tensors = {plain_f32("l.0.q_proj.weight", 1, 16, 1.0f), plain_f32("l.0.k_proj.weight", 1, 16, -4.0f),
                                           plain_f32("l.0.v_proj.weight", 1, 16, 2.0f), plain_f32("l.0.o_proj.weight", 1, 16, 1.0f)};
  quantize(tensors);
  FINESCALE_ASSERT_OK(*report_);
  for (const char* part : {"q_proj", "k_proj", "v_proj"}) EXPECT_EQ(scalar(fmt::format("l.0.{}.weight_scale_2", part)), 4.0f / 2688);
  EXPECT_EQ(scalar("l.0.o_proj.weight_scale_2"), 1.0f / 2688);
  EXPECT_THAT(planned("l.0.k_proj.weight").reason, AllOf(HasSubstr("shared with"), HasSubstr("q_proj"), HasSubstr("v_proj")));
  quantize(tensors, {.share_global = false});
  FINESCALE_ASSERT_OK(*report_);
  EXPECT_EQ(scalar("l.0.q_proj.weight_scale_2"), 1.0f / 2688);
  quantize(tensors, {.exclude = {"*.q_proj"}});
  FINESCALE_ASSERT_OK(*report_);
  EXPECT_THAT((*report_)->plan.notes, ElementsAre(AllOf(HasSubstr("l.0.q_proj.weight"), HasSubstr("stays plain"))));
}

// A tensor of zeros has a usable global scale and stays zero.
TEST_F(QuantizeCheckpoint, zeros_stay_zeros) {
  for (const Encoding* encoding : encodings()) {
    quantize({plain_f32("expert.weight", 4, 32, 0.0f)}, {.encoding = encoding});
    FINESCALE_ASSERT_OK(*report_);
    const auto recognition = recognize(*output_);
    FINESCALE_ASSERT_OK(recognition);
    EXPECT_EQ(recognition->weights.at(0).global_scale, 1.0f);
    fs::remove(folder_ / "back");
    FINESCALE_ASSERT_OK(dequantize_checkpoint(*output_, folder_ / "back", {.dtype = Dtype::f32}, {}, device_));
    EXPECT_THAT(floats_of(*Checkpoint::open(folder_ / "back")->find("expert.weight")), Each(0.0f));
  }
}

TEST_F(QuantizeCheckpoint, a_tensor_that_is_not_finite_is_refused_by_name) {
  auto bad = plain_f32("b.weight", 2, 16);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bad.bytes.data() + 20 * sizeof(float), &nan, sizeof(nan));
  const std::vector<FileTensor> tensors = {plain_f32("a.weight", 2, 16), bad};
  quantize(tensors);
  ASSERT_FALSE(*report_);
  EXPECT_EQ(report_->status().code, Code::invalid_argument);
  EXPECT_THAT(report_->status().sentence, AllOf(HasSubstr("\"b.weight\""), HasSubstr("[1, 4]")));
  EXPECT_THAT(names_in(folder_.path()), ElementsAre("in"));
  quantize(tensors, {.allow_nonfinite = true});
  FINESCALE_ASSERT_OK(*report_);
  EXPECT_EQ(bytes_of(*output_->find("b.weight_scale"))[1], '\x7F');
  EXPECT_NE(bytes_of(*output_->find("b.weight_scale"))[0], '\x7F');
}

TEST_F(QuantizeCheckpoint, what_is_quantized_already_is_refused) {
  quantize(modelopt_weight("a", 1, 16, 0.5f));
  ASSERT_FALSE(*report_);
  EXPECT_EQ(report_->status().code, Code::invalid_argument);
  EXPECT_THAT(report_->status().sentence, AllOf(HasSubstr("a.weight"), HasSubstr("quantized already")));
}

TEST_F(QuantizeCheckpoint, searched_scales_are_not_worse) {
  const auto input = Checkpoint::open(fs::path(FINESCALE_TEST_DIRECTORY) / "data/minilm_query.safetensors");
  FINESCALE_ASSERT_OK(input);
  double before = 1;
  for (const ScaleSearch search : {ScaleSearch::max, ScaleSearch::four_six, ScaleSearch::mse}) {
    QuantizeCheckpointOptions options{.measure = true};
    options.recipe.search = search;
    const auto report = quantize_checkpoint(*input, folder_ / "out", options, {.existing = Existing::replace}, device_);
    FINESCALE_ASSERT_OK(report);
    ASSERT_EQ(report->errors.size(), 1u);
    const WeightError& error = report->errors[0];
    EXPECT_GT(error.relative_rms, 0.05);
    EXPECT_LT(error.relative_rms, before);
    EXPECT_GE(error.worst_block, error.relative_rms);
    EXPECT_EQ(error.worst_col % 16, 0);
    before = error.relative_rms;
  }
}

// The error is what plain arithmetic on the stored file says.
TEST_F(QuantizeCheckpoint, measures_what_is_stored) {
  const auto input = Checkpoint::open(golden("plain.safetensors"));
  FINESCALE_ASSERT_OK(input);
  const auto report = quantize_checkpoint(*input, folder_ / "out", {.measure = true}, {}, device_);
  FINESCALE_ASSERT_OK(report);
  const auto dense = Checkpoint::open(golden("dequantized.safetensors"));
  ASSERT_EQ(report->errors.size(), 5u);
  for (const WeightError& error : report->errors) {
    const Tensor& plain = *input->find(error.tensor);
    if (plain.dtype != Dtype::f32) continue;
    const auto x = floats_of(plain), y = floats_of(*dense->find(error.tensor));
    double wrong = 0, all = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      wrong += (static_cast<double>(x[i]) - y[i]) * (static_cast<double>(x[i]) - y[i]);
      all += static_cast<double>(x[i]) * x[i];
    }
    EXPECT_DOUBLE_EQ(error.relative_rms, wrong == 0 ? 0 : std::sqrt(wrong / all)) << error.tensor;
  }
}

// Tensors may lie at any byte; the bits of the result do not depend on it.
TEST_F(QuantizeCheckpoint, unaligned_tensors_give_the_same_bytes) {
  std::vector<float> values;
  for (int i = 0; i < 64; ++i) values.push_back(std::sin(static_cast<float>(i)));
  quantize({{"w.weight", "F32", {2, 32}, raw(values)}});
  FINESCALE_ASSERT_OK(*report_);
  const std::string codes = bytes_of(*output_->find("w.weight")), scales = bytes_of(*output_->find("w.weight_scale"));
  for (std::int64_t shift = 1; shift < 8; ++shift) {
    quantize({{"aaa", "U8", {shift}, std::string(static_cast<std::size_t>(shift), 'x')}, {"w.weight", "F32", {2, 32}, raw(values)}});
    FINESCALE_ASSERT_OK(*report_);
    EXPECT_EQ(bytes_of(*output_->find("w.weight")), codes);
    EXPECT_EQ(bytes_of(*output_->find("w.weight_scale")), scales);
  }
}

TEST_F(QuantizeCheckpoint, flashrt_has_no_global_scale) {
  QuantizeCheckpointOptions options;
  options.recipe.profile = Profile::flashrt;
  quantize({{"a.weight", "F16", {1, 16}, raw(std::vector<std::uint16_t>(16, 0x4A00))}}, options);  // 12
  FINESCALE_ASSERT_OK(*report_);
  EXPECT_EQ(scalar("a.weight_scale_2"), 1.0f);
  EXPECT_EQ(bytes_of(*output_->find("a.weight_scale")), "\x40");  // 12 / 6 = 2
}

// The divisor that compressed-tensors itself forms, (1/amax) 2688 in FP32, is in the file, not one inverted twice.
TEST_F(QuantizeCheckpoint, compressed_tensors_divisors_keep_their_bits) {
  QuantizeCheckpointOptions options{.encoding = find_encoding("compressed_tensors")};
  options.recipe.profile = Profile::compressed_tensors;
  int fragile = 0;
  for (const float amax : {0.1f, 0.3f, 0.7f, 1.1f, 1.3f, 2.9f, 5.3f}) {
    const float divisor = 1.0f / amax * 2688.0f;
    fragile += 1.0f / (1.0f / divisor) != divisor ? 1 : 0;
    quantize({plain_f32("a.weight", 2, 16, amax)}, options);
    FINESCALE_ASSERT_OK(*report_);
    EXPECT_EQ(scalar("a.weight_global_scale"), divisor);
  }
  EXPECT_GT(fragile, 0);
}

TEST_F(QuantizeCheckpoint, profiles_that_the_encoding_cannot_hold_are_unsupported) {
  QuantizeCheckpointOptions options;
  options.recipe.profile = Profile::deepgemm;
  quantize({plain_f32("a.weight", 1, 16, 12.0f)}, options);
  ASSERT_FALSE(*report_);
  EXPECT_EQ(report_->status().code, Code::unsupported);
  EXPECT_THAT(report_->status().sentence, HasSubstr("\"a.weight\""));
  EXPECT_THAT(names_in(folder_.path()), ElementsAre("in"));
}

TEST_F(QuantizeCheckpoint, a_stop_leaves_nothing) {
  write_text(folder_ / "in", safetensors_of(std::vector<FileTensor>{plain_f32("a.weight", 1, 16), plain_f32("b.weight", 1, 16)}));
  const auto input = Checkpoint::open(folder_ / "in");
  FINESCALE_ASSERT_OK(input);
  std::vector<std::string> seen;
  OutputOptions output;
  output.progress = [&](const Progress& progress) {
    seen.emplace_back(progress.tensor);
    EXPECT_EQ(progress.count, 2);
    return seen.size() < 2;
  };
  const auto report = quantize_checkpoint(*input, folder_ / "out", {}, output, device_);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.status().sentence, AllOf(HasSubstr("stopped"), HasSubstr("b.weight")));
  EXPECT_THAT(seen, ElementsAre("a.weight", "b.weight"));
  EXPECT_THAT(names_in(folder_.path()), ElementsAre("in"));
}

}  // namespace
}  // namespace finescale::checkpoint
