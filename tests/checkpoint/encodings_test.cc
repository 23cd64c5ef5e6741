// Which weights are recognized, what they mean, and what is refused.
#include "checkpoint/dequantize_checkpoint.h"
#include "checkpoint/encoding.h"
#include "files.h"

#include <finescale/access.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <cmath>

namespace finescale::checkpoint {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A checkpoint in memory and what is recognized in it.
struct Recognized {
  explicit Recognized(const std::vector<FileTensor>& tensors, StringMap configs = {}, std::string_view metadata = {})
      : file(safetensors_of(tensors, metadata)),
        checkpoint(Checkpoint::view(as_bytes(file), std::move(configs))),
        found(recognize(*checkpoint)) {}

  std::string file;
  Result<Checkpoint> checkpoint;
  Result<Recognition> found;
};

std::vector<float> values_of(const Matrix& packed) {
  const Matrix matrix = with_strides(packed);
  std::vector<float> values;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t col = 0; col < matrix.cols; ++col) {
      values.push_back(element_at(matrix, 0, row, col) * block_scale_at(matrix, 0, row, col) * global_at(matrix, 0, row));
    }
  }
  return values;
}

TEST(Encodings, one_multiplies_the_other_divides) {
  const Recognized modelopt(modelopt_weight("w", 1, 16, 1.0f / 3584, 0x77, 0x7E));
  const Recognized packed(packed_weight("w", 1, 16, 3584, 0x77, 0x7E));
  for (const Recognized* file : {&modelopt, &packed}) {
    FINESCALE_ASSERT_OK(file->found);
    ASSERT_EQ(file->found->weights.size(), 1u);
    EXPECT_THAT(values_of(file->found->weights[0].matrix()), Each(testing::FloatEq(0.75f)));  // 6 * 448 / 3584
    EXPECT_THAT(file->found->notes, ElementsAre(HasSubstr("no quantization config")));
  }
  EXPECT_EQ(modelopt.found->weights[0].encoding, find_encoding("modelopt"));
  EXPECT_EQ(packed.found->weights[0].encoding, find_encoding("compressed_tensors"));
}

TEST(Encodings, scalars_come_in_three_shapes) {
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{}, {1}, {1, 1}}) {
    auto tensors = modelopt_weight("w", 1, 16, 0.25f);
    tensors[2].shape = shape;
    const Recognized file(tensors);
    FINESCALE_ASSERT_OK(file.found);
    ASSERT_EQ(file.found->weights.size(), 1u);
    EXPECT_THAT(values_of(file.found->weights[0].matrix()), Each(0.25f));
  }
}

TEST(Encodings, tags_say_what_the_bytes_are) {
  auto tensors = modelopt_weight("a.b", 3, 40, 0.5f) + std::vector<FileTensor>{{"a.b.input_scale", "F32", {}, raw_f32(0.125f)}};
  const Recognized file(tensors);
  FINESCALE_ASSERT_OK(file.found);
  const QuantizedWeight& weight = file.found->weights[0];
  EXPECT_EQ(weight.module, "a.b");
  const Matrix matrix = weight.matrix();
  EXPECT_EQ(matrix.format, kNvfp4);
  EXPECT_EQ(matrix.rows, 3);
  EXPECT_EQ(matrix.cols, 40);
  EXPECT_EQ(matrix.scale_cols(), 3);  // the last block of a row is partial
  EXPECT_EQ(matrix.global_kind, GlobalScale::one);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(matrix.data) % static_cast<std::uintptr_t>(matrix.alignment), 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(matrix.scales) % static_cast<std::uintptr_t>(matrix.alignment), 0u);
  ASSERT_NE(weight.input_scale, nullptr);
  for (const Tensor& tensor : file.checkpoint->tensors()) EXPECT_EQ(file.found->weight_of(tensor), &weight) << tensor.name;
}

struct BrokenWeight {
  int tensor;  // of modelopt_weight
  FileTensor replaced_by;
  std::string sentence;
};

TEST(Encodings, dtypes_and_shapes_must_agree) {
  const std::string eight(8, '\x22');
  const std::vector<BrokenWeight> cases = {
      {1, {"w.weight_scale", "F8_E4M3", {1, 2}, "88"}, "[1, 2]"},
      {1, {"w.weight_scale", "F8_E4M3", {1}, "8"}, "[1]"},
      {1, {"w.weight_scale", "U8", {1, 1}, "8"}, "U8"},
      {1, {"w.elsewhere", "F8_E4M3", {1, 1}, "8"}, "w.weight_scale are missing"},
      {2, {"w.weight_scale_2", "F32", {2}, raw_f32(1) + raw_f32(1)}, "one F32"},
      {2, {"w.weight_scale_2", "BF16", {2}, "abcd"}, "one F32"},
      {0, {"w.weight", "U8", {1, 1, 8}, eight}, "[1, 1, 8]"},
      {0, {"w.weight", "U8", {8}, eight}, "[8]"},
  };
  for (const BrokenWeight& broken : cases) {
    auto tensors = modelopt_weight("w", 1, 16, 0.5f);
    tensors[static_cast<std::size_t>(broken.tensor)] = broken.replaced_by;
    const Recognized file(tensors);
    FINESCALE_ASSERT_OK(file.found);
    EXPECT_THAT(file.found->weights, IsEmpty());
    ASSERT_FALSE(file.found->unread.empty());
    EXPECT_EQ(file.found->unread[0].why.code, Code::io_error);
    EXPECT_THAT(file.found->unread[0].why.sentence, AllOf(HasSubstr("w.weight"), HasSubstr(broken.sentence)));
  }
}

// What is stored counts, whatever a list says: a bf16 weight is never read as packed codes.
TEST(Encodings, stored_dtype_wins_over_the_metadata) {
  const FileTensor plain{"model.layers.0.mlp.up_proj.weight", "BF16", {1, 8}, std::string(16, '\x3f')};
  const Recognized file({plain,
                         {"model.layers.0.mlp.up_proj.weight_scale", "F32", {}, raw_f32(1)},
                         {"model.layers.0.mlp.up_proj.weight_scale_2", "F32", {}, raw_f32(1)}},
                        {{kConfigFile, R"({"quantization_config":{"quant_method":"modelopt","quant_algo":"NVFP4"}})"}});
  FINESCALE_ASSERT_OK(file.found);
  EXPECT_THAT(file.found->weights, IsEmpty());
  EXPECT_THAT(file.found->unread, IsEmpty());
}

TEST(Encodings, metadata_comes_first) {
  const auto tensors = modelopt_weight("w", 1, 16, 0.5f);
  const std::string other = R"({"quantization_config":{"quant_method":"someone"}})";
  for (const Recognized& file :
       {Recognized(tensors, {{kConfigFile, other}}), Recognized(tensors, {}, R"({"quantization_config":"{\"quant_method\":\"someone\"}"})"),
        Recognized(tensors, {}, R"({"_quantization_metadata":"{}"})"),
        Recognized(tensors + std::vector<FileTensor>{{"w.comfy_quant", "U8", {2}, "{}"}})}) {
    FINESCALE_ASSERT_OK(file.found);
    EXPECT_THAT(file.found->weights, IsEmpty());
    ASSERT_FALSE(file.found->unread.empty());
    EXPECT_EQ(file.found->unread[0].why.code, Code::unsupported);
    EXPECT_THAT(file.found->unread[0].why.sentence, AllOf(HasSubstr("\"w.weight\""), HasSubstr("method")));
  }
}

TEST(Encodings, other_encodings_are_named_and_not_read) {
  const Recognized file({{"a.weight", "F8_E4M3", {1, 16}, std::string(16, '8')},
                         {"a.weight_scale", "F32", {}, raw_f32(0.5f)},
                         {"experts.gate_up_proj_blocks", "U8", {1, 2, 1, 16}, std::string(32, '1')},
                         {"position_ids", "I64", {1, 1}, std::string(8, '\0')}});
  FINESCALE_ASSERT_OK(file.found);
  ASSERT_EQ(file.found->unread.size(), 2u);
  EXPECT_THAT(file.found->unread[0].why.sentence, AllOf(HasSubstr("a.weight"), HasSubstr("F8_E4M3")));
  EXPECT_THAT(file.found->unread[1].why.sentence, HasSubstr("gate_up_proj_blocks"));
}

TEST(QuantizationMetadata, reads_modelopt) {
  const Recognized file({}, {{kModelOptConfigFile, R"({"producer":{"name":"modelopt"},"quantization":{"quant_algo":"NVFP4",
      "kv_cache_quant_algo":"FP8","group_size":16,"exclude_modules":["lm_head","*.gate"]}})"}});
  FINESCALE_ASSERT_OK(file.found);
  const QuantizationMetadata& metadata = file.found->metadata;
  EXPECT_EQ(metadata.method, "modelopt");
  EXPECT_EQ(metadata.algorithm, "NVFP4");
  EXPECT_EQ(metadata.kv_cache, "FP8");
  EXPECT_TRUE(metadata.activations);
  EXPECT_THAT(metadata.excluded, ElementsAre("lm_head", "*.gate"));
  EXPECT_THAT(metadata.source, HasSubstr(kModelOptConfigFile));
}

TEST(QuantizationMetadata, reads_compressed_tensors) {
  const auto read = [](std::string_view input_activations) {
    return Recognized(
        {}, {{kConfigFile, fmt::format(R"({{"quantization_config":{{"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized",
        "ignore":["lm_head"],"config_groups":{{"group_0":{{"input_activations":{}}}}}}}}})",
                                       input_activations)}});
  };
  const Recognized weights_only = read("null"), both = read(R"({"dynamic":"local"})");
  FINESCALE_ASSERT_OK(weights_only.found);
  FINESCALE_ASSERT_OK(both.found);
  EXPECT_EQ(both.found->metadata.algorithm, "nvfp4-pack-quantized");
  EXPECT_FALSE(weights_only.found->metadata.activations);
  EXPECT_TRUE(both.found->metadata.activations);
}

TEST(QuantizationMetadata, bad_configs_are_errors) {
  for (const char* text : {"{", "{\"quantization_config\":[]}", "{\"quantization_config\":{\"ignore\":\"all\"}}",
                           "{\"quantization_config\":{\"ignore\":[1]}}", "{\"a\":1,\"a\":2}"}) {
    const Recognized file({}, {{kConfigFile, text}});
    ASSERT_FALSE(file.found) << text;
    EXPECT_EQ(file.found.status().code, Code::io_error);
    EXPECT_THAT(file.found.status().sentence, HasSubstr(kConfigFile));
  }
}

TEST(QuantizationMetadata, lists_of_excluded_modules) {
  const std::vector<std::string> list = {"*.self_attn.q_proj", "model.lm_head"};
  EXPECT_TRUE(is_excluded(list, "model.layers.3.self_attn.q_proj"));
  EXPECT_TRUE(is_excluded(list, "layers.3.self_attn.q_proj"));
  EXPECT_TRUE(is_excluded(list, "model.layers.3.self_attn.qkv_proj"));  // a part of it is
  EXPECT_TRUE(is_excluded(list, "lm_head"));
  EXPECT_TRUE(is_excluded(list, "model.lm_head"));
  EXPECT_FALSE(is_excluded(list, "model.layers.3.mlp.up_proj"));
  EXPECT_TRUE(is_excluded({"re:.*mlp\\.gate$"}, "model.layers.0.mlp.gate"));
  EXPECT_FALSE(is_excluded({"re:.*mlp\\.gate$"}, "model.layers.0.mlp.gate_proj"));
  EXPECT_TRUE(is_excluded({"re:visual.*"}, "visual.blocks.0"));
  EXPECT_FALSE(is_excluded({"re:(a|b)"}, "a"));  // expressions beyond the simple ones are not read
}

// An independent implementation made these files (golden/make_golden.py).
TEST(Golden, both_encodings_dequantize_to_the_same_values) {
  const TemporaryFolder folder;
  const Device device = cpu();
  const auto expected = Checkpoint::open(golden("dequantized.safetensors"));
  FINESCALE_ASSERT_OK(expected);
  for (const char* name : {"modelopt.safetensors", "compressed_tensors.safetensors"}) {
    const auto input = Checkpoint::open(golden(name));
    FINESCALE_ASSERT_OK(input);
    FINESCALE_ASSERT_OK(dequantize_checkpoint(*input, folder / name, {.dtype = Dtype::f32}, {}, device));
    const auto output = Checkpoint::open(folder / name);
    FINESCALE_ASSERT_OK(output);
    if (name[0] == 'm') {
      expect_equal_tensors(*output, *expected);
      continue;
    }
    // With u = 2^-24: a stored divisor 1/g inverted again is g up to 2u, and each of the two products compared is rounded once more.
    constexpr double kBound = 4.001 * 0x1p-24;
    for (const Tensor& tensor : expected->tensors()) {
      const Tensor* other = output->find(tensor.name);
      ASSERT_NE(other, nullptr) << tensor.name;
      if (tensor.dtype != Dtype::f32) continue;
      const auto wanted = floats_of(tensor), got = floats_of(*other);
      for (std::size_t i = 0; i < wanted.size(); ++i)
        EXPECT_NEAR(got[i], wanted[i], kBound * std::abs(wanted[i])) << tensor.name << " " << i;
    }
  }
}

}  // namespace
}  // namespace finescale::checkpoint
