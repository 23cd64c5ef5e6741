// convert, dequantize, and whole directories: every tensor accounted for, configs rewritten, nothing half done.
#include "checkpoint/convert_checkpoint.h"
#include "checkpoint/dequantize_checkpoint.h"
#include "checkpoint/json_text.h"
#include "checkpoint/quantize_checkpoint.h"
#include "files.h"

#include <finescale/formats/bits.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace finescale::checkpoint {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Encoding& modelopt() { return *find_encoding("modelopt"); }
const Encoding& compressed_tensors() { return *find_encoding("compressed_tensors"); }

class ConvertCheckpoint : public testing::Test {
 protected:
  Checkpoint file(const std::vector<FileTensor>& tensors, std::string_view metadata = {}) {
    const fs::path path = folder_ / fmt::format("in{}", files_++);
    write_text(path, safetensors_of(tensors, metadata));
    auto opened = Checkpoint::open(path);
    EXPECT_TRUE(opened) << opened.status().sentence;
    return *std::move(opened);
  }

  Checkpoint opened(const std::string& name) {
    auto checkpoint = Checkpoint::open(folder_ / name);
    EXPECT_TRUE(checkpoint) << checkpoint.status().sentence;
    return *std::move(checkpoint);
  }

  Device device_ = cpu();
  TemporaryFolder folder_;
  int files_ = 0;
};

TEST_F(ConvertCheckpoint, the_golden_files_are_each_others_conversions) {
  const auto from = Checkpoint::open(golden("modelopt.safetensors")), expected = Checkpoint::open(golden("compressed_tensors.safetensors"));
  FINESCALE_ASSERT_OK(from);
  FINESCALE_ASSERT_OK(expected);
  const auto plan = convert_checkpoint(*from, folder_ / "out", compressed_tensors(), {});
  FINESCALE_ASSERT_OK(plan);
  expect_equal_tensors(*expected, opened("out"));
  EXPECT_THAT(plan->notes, Contains(AllOf(HasSubstr("reciprocals"), HasSubstr("bit for bit"))));
}

// The note's count is right: powers of two come back, 3 * 2^-13 does as counted by trying.
TEST_F(ConvertCheckpoint, says_how_many_reciprocals_do_not_come_back) {
  std::vector<FileTensor> tensors;
  int changed = 0, all = 0;
  for (const float g : {0.25f, 0x1p-20f, 1.0f / 2688, 0.0123f, 0.7f, 0.3333f, 0.00057f, 0.011f, 0.0909f}) {
    tensors = tensors + modelopt_weight(fmt::format("w{}", all++), 1, 16, g);
    changed += 1.0f / (1.0f / g) != g ? 1 : 0;
  }
  ASSERT_GT(changed, 0);
  ASSERT_LT(changed, all);
  const Checkpoint input = file(tensors);
  const auto plan = convert_checkpoint(input, folder_ / "out", compressed_tensors(), {});
  FINESCALE_ASSERT_OK(plan);
  EXPECT_THAT(plan->notes,
              Contains(AllOf(HasSubstr(fmt::format("{} scalars", all)), HasSubstr(fmt::format("of those, {} do not", changed)))));
  const auto back = convert_checkpoint(opened("out"), folder_ / "back", modelopt(), {});
  FINESCALE_ASSERT_OK(back);
  int differing = 0;
  const Checkpoint returned = opened("back");
  for (const Tensor& tensor : input.tensors()) differing += bytes_of(tensor) != bytes_of(*returned.find(tensor.name)) ? 1 : 0;
  EXPECT_EQ(differing, changed);
}

TEST_F(ConvertCheckpoint, input_scales_are_converted_and_declared) {
  const Checkpoint input = file(modelopt_weight("m", 2, 32, 0.5f) + std::vector<FileTensor>{{"m.input_scale", "F32", {}, raw_f32(0.125f)},
                                                                                            {"norm.weight", "BF16", {2}, "abcd"}});
  FINESCALE_ASSERT_OK(convert_checkpoint(input, folder_ / "out", compressed_tensors(), {}));
  const Checkpoint output = opened("out");
  ASSERT_NE(output.find("m.input_global_scale"), nullptr);
  EXPECT_EQ(floats_of(*output.find("m.input_global_scale")), std::vector<float>{8.0f});
  EXPECT_EQ(output.find("m.input_global_scale")->shape, Shape{1});
  EXPECT_EQ(bytes_of(*output.find("norm.weight")), "abcd");
  EXPECT_EQ(output.find("m.input_scale"), nullptr);
  const auto recognition = recognize(output);
  FINESCALE_ASSERT_OK(recognition);
  EXPECT_TRUE(recognition->metadata.activations);
  FINESCALE_ASSERT_OK(convert_checkpoint(output, folder_ / "back", modelopt(), {}));
  expect_equal_tensors(input, opened("back"));
}

TEST_F(ConvertCheckpoint, what_the_target_cannot_hold_is_refused) {
  const Checkpoint input =
      file(modelopt_weight("m", 2, 32, 0.5f) + std::vector<FileTensor>{{"m.pre_quant_scale", "F32", {32}, std::string(128, '\0')}});
  const auto plan = convert_checkpoint(input, folder_ / "out", compressed_tensors(), {});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.status().code, Code::unsupported);
  EXPECT_THAT(plan.status().sentence, HasSubstr("m.pre_quant_scale"));
  EXPECT_FALSE(dequantize_checkpoint(input, folder_ / "out", {}, {}, device_));
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(ConvertCheckpoint, names_that_collide_are_refused) {
  const Checkpoint input = file(modelopt_weight("m", 2, 32, 0.5f) + std::vector<FileTensor>{plain_f32("m.weight_packed", 1, 1)});
  EXPECT_THAT(convert_checkpoint(input, folder_ / "out", compressed_tensors(), {}).status().sentence, HasSubstr("m.weight_packed"));
}

// An FP8 checkpoint: nothing that convert knows, and every tensor is accounted for.
TEST_F(ConvertCheckpoint, unknown_weights_are_copied_and_listed_or_refused) {
  const std::vector<FileTensor> tensors = {{"l.in_proj.weight", "F8_E4M3", {1, 16}, std::string(16, '8')},
                                           {"l.in_proj.weight_scale", "F32", {}, raw_f32(0.5f)},
                                           {"l.in_proj.input_scale", "F32", {}, raw_f32(0.125f)},
                                           {"l.norm.weight", "BF16", {4}, "abcdefgh"}};
  const Checkpoint input = file(tensors);
  const auto plan = convert_checkpoint(input, folder_ / "out", compressed_tensors(), {});
  FINESCALE_ASSERT_OK(plan);
  EXPECT_THAT(plan->notes, Contains(AllOf(HasSubstr("l.in_proj.weight"), HasSubstr("copied as it is"))));
  expect_equal_tensors(input, opened("out"));
  const auto plain = dequantize_checkpoint(input, folder_ / "plain", {}, {}, device_);
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.status().code, Code::unsupported);
  EXPECT_THAT(plain.status().sentence, AllOf(HasSubstr("l.in_proj.weight"), HasSubstr("F8_E4M3")));
  // With a declaration that the output would have to contradict, it is an error.
  const Checkpoint declared = file(tensors, R"({"quantization_config":"{\"quant_method\":\"modelopt\",\"quant_algo\":\"FP8\"}"})");
  EXPECT_EQ(convert_checkpoint(declared, folder_ / "none", compressed_tensors(), {}).status().code, Code::unsupported);
}

TEST_F(ConvertCheckpoint, dequantize_drops_scales_and_says_what_overflows) {
  const Checkpoint input =
      file(modelopt_weight("m", 2, 32, 1000.0f, 0x77, 0x7E) + std::vector<FileTensor>{{"m.input_scale", "F32", {}, raw_f32(1)}});
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    const std::string name(dtype_name(dtype));
    const auto plan = dequantize_checkpoint(input, folder_ / name, {.dtype = dtype}, {}, device_);
    FINESCALE_ASSERT_OK(plan);
    const Checkpoint output = opened(name);
    ASSERT_EQ(output.tensors().size(), 1u);
    EXPECT_EQ(output.tensors()[0].name, "m.weight");
    EXPECT_EQ(output.tensors()[0].dtype, dtype);
    EXPECT_EQ(output.tensors()[0].shape, (Shape{2, 32}));
    EXPECT_EQ(plan->count(Action::drop), 3);
    if (dtype == Dtype::f16) {
      EXPECT_THAT(plan->notes, Contains(AllOf(HasSubstr("m.weight"), HasSubstr("64 elements"), HasSubstr("F16"))));
    } else {
      EXPECT_THAT(plan->notes, Each(testing::Not(HasSubstr("elements"))));
    }
  }
  EXPECT_THAT(floats_of(opened("F32").tensors()[0]), Each(2688.0f * 1000));
  EXPECT_EQ(dequantize_checkpoint(input, folder_ / "u8", {.dtype = Dtype::u8}, {}, device_).status().code, Code::invalid_argument);
}

class ConvertDirectory : public ConvertCheckpoint {
 protected:
  ConvertDirectory() {
    fs::create_directories(folder_ / "model/1_Pooling");
    write_text(folder_ / "model" / kFirst,
               safetensors_of(std::vector<FileTensor>{plain_f32("model.embed_tokens.weight", 4, 16),
                                                      plain_f32("model.layers.0.mlp.gate_proj.weight", 4, 32, 3.0f)}));
    write_text(folder_ / "model" / kSecond,
               safetensors_of(std::vector<FileTensor>{plain_f32("model.layers.0.mlp.up_proj.weight", 4, 32, 6.0f),
                                                      {"model.norm.weight", "BF16", {2}, "abcd"}}));
    write_text(
        folder_ / "model/model.safetensors.index.json",
        fmt::format(
            R"({{"metadata":{{"total_size":1}},"weight_map":{{"model.embed_tokens.weight":"{0}","model.layers.0.mlp.gate_proj.weight":"{0}",
                               "model.layers.0.mlp.up_proj.weight":"{1}","model.norm.weight":"{1}"}}}})",
            kFirst, kSecond));
    write_text(folder_ / "model/config.json", R"({"architectures":["X"],"rms_norm_eps":1e-05,"rope_theta":10000.0,"vocab_size":4})");
    write_text(folder_ / "model/tokenizer.json", "{ }");
    write_text(folder_ / "model/1_Pooling/config.json", "{}");
  }

  Json config(const std::string& path) { return *parse_json(read_text(folder_ / path), path); }

  static constexpr const char* kFirst = "model-00001-of-00002.safetensors";
  static constexpr const char* kSecond = "model-00002-of-00002.safetensors";
};

TEST_F(ConvertDirectory, numbers_that_only_python_writes_come_through) {
  const std::string limits = R"("limits":[0.0,Infinity,-Infinity,NaN],"note":"NaN \"Infinity\"")";
  write_text(folder_ / "model/config.json", "{" + limits + "}");
  FINESCALE_ASSERT_OK(quantize_checkpoint(opened("model"), folder_ / "q", {}, {}, device_));
  std::string text = read_text(folder_ / "q/config.json");
  std::erase_if(text, [](char c) { return c == '\n' || c == ' '; });
  EXPECT_THAT(text, HasSubstr(R"("limits":[0.0,Infinity,-Infinity,NaN],"note":"NaN\"Infinity\"")"));
  EXPECT_FALSE(parse_json(R"({"a":Infinit})", "text"));
}

TEST_F(ConvertDirectory, quantize_convert_dequantize) {
  const Checkpoint input = opened("model");
  FINESCALE_ASSERT_OK(quantize_checkpoint(input, folder_ / "q", {}, {}, device_));
  EXPECT_THAT(names_in(folder_ / "q"), ElementsAre("1_Pooling", "config.json", "hf_quant_config.json", kFirst, kSecond,
                                                   "model.safetensors.index.json", "tokenizer.json"));
  const Checkpoint quantized = opened("q");  // opening checks shards against the index
  EXPECT_EQ(quantized.shard_name(quantized.find("model.layers.0.mlp.up_proj.weight_scale_2")->shard), kSecond);
  EXPECT_EQ(floats_of(*quantized.find("model.layers.0.mlp.gate_proj.weight_scale_2")),
            std::vector<float>{6.0f / 2688});  // shared over shards
  EXPECT_EQ(read_text(folder_ / "q/tokenizer.json"), "{ }");

  const Json made = config("q/config.json");
  EXPECT_EQ(made["rms_norm_eps"], 1e-05);
  EXPECT_EQ(made["architectures"][0], "X");
  EXPECT_EQ(made["quantization_config"]["quant_method"], "modelopt");
  EXPECT_EQ(made["quantization_config"]["quant_algo"], "W4A16_NVFP4");
  EXPECT_EQ(made["quantization_config"]["ignore"], (Json{"lm_head", "model.embed_tokens"}));
  const Json other = config("q/hf_quant_config.json");
  EXPECT_EQ(other["quantization"]["quant_algo"], "W4A16_NVFP4");
  EXPECT_EQ(other["quantization"]["group_size"], 16);
  EXPECT_EQ(other["quantization"]["exclude_modules"], (Json{"lm_head", "model.embed_tokens"}));
  std::int64_t bytes = 0;
  for (const Tensor& tensor : quantized.tensors()) bytes += static_cast<std::int64_t>(tensor.bytes.size());
  EXPECT_EQ(config("q/model.safetensors.index.json")["metadata"]["total_size"], bytes);

  FINESCALE_ASSERT_OK(convert_checkpoint(quantized, folder_ / "ct", compressed_tensors(), {}));
  EXPECT_FALSE(fs::exists(folder_ / "ct/hf_quant_config.json"));
  const Json packed = config("ct/config.json")["quantization_config"];
  EXPECT_EQ(packed["quant_method"], "compressed-tensors");
  EXPECT_EQ(packed["format"], "nvfp4-pack-quantized");
  EXPECT_TRUE(packed["config_groups"]["group_0"]["input_activations"].is_null());
  EXPECT_EQ(packed["config_groups"]["group_0"]["weights"]["group_size"], 16);
  EXPECT_EQ(packed["ignore"], (Json{"lm_head", "model.embed_tokens"}));

  FINESCALE_ASSERT_OK(dequantize_checkpoint(opened("ct"), folder_ / "plain", {.dtype = Dtype::f32}, {}, device_));
  EXPECT_FALSE(config("plain/config.json").contains("quantization_config"));
  const Checkpoint plain = opened("plain");
  EXPECT_EQ(plain.tensors().size(), input.tensors().size());
  for (const float value : floats_of(*plain.find("model.layers.0.mlp.gate_proj.weight"))) EXPECT_NEAR(value, 3.0f, 1e-6f);
}

TEST_F(ConvertDirectory, a_missing_shard_writes_nothing) {
  fs::remove(folder_ / "model" / kSecond);
  EXPECT_FALSE(Checkpoint::open(folder_ / "model"));
  EXPECT_THAT(names_in(folder_.path()), ElementsAre("model"));
}

TEST_F(ConvertDirectory, a_bad_tensor_in_the_middle_leaves_no_directory) {
  std::string shard = read_text(folder_ / "model" / kSecond);
  const float infinity = std::numeric_limits<float>::infinity();
  std::memcpy(shard.data() + shard.find("}}") + 2, &infinity, sizeof(infinity));
  write_text(folder_ / "model" / kSecond, shard);
  const auto report = quantize_checkpoint(opened("model"), folder_ / "q", {.share_global = false}, {}, device_);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.status().sentence, AllOf(HasSubstr("up_proj"), HasSubstr("[0, 0]")));
  EXPECT_THAT(names_in(folder_.path()), ElementsAre("model"));
}

TEST_F(ConvertDirectory, an_existing_directory_is_replaced_only_when_told) {
  fs::create_directories(folder_ / "q");
  write_text(folder_ / "q/old.safetensors", "old");
  const Checkpoint input = opened("model");
  const auto refused = quantize_checkpoint(input, folder_ / "q", {}, {}, device_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.status().sentence, HasSubstr("exists already"));
  EXPECT_THAT(names_in(folder_ / "q"), ElementsAre("old.safetensors"));
  FINESCALE_ASSERT_OK(quantize_checkpoint(input, folder_ / "q", {}, {.existing = Existing::replace}, device_));
  EXPECT_FALSE(fs::exists(folder_ / "q/old.safetensors"));
  // In place: the input stays readable until it is done.
  FINESCALE_ASSERT_OK(quantize_checkpoint(input, folder_ / "model", {}, {.existing = Existing::replace}, device_));
  expect_equal_tensors(opened("q"), opened("model"));
  EXPECT_THAT(names_in(folder_.path()), ElementsAre("model", "q"));
  // But never a folder that holds the input.
  write_text(folder_ / "x.safetensors", "");
  EXPECT_THAT(quantize_checkpoint(opened("model"), folder_.path(), {}, {.existing = Existing::replace}, device_).status().sentence,
              HasSubstr("quantized already"));
  EXPECT_THAT(dequantize_checkpoint(opened("model"), folder_.path(), {}, {.existing = Existing::replace}, device_).status().sentence,
              HasSubstr("holds the input"));
}

}  // namespace
}  // namespace finescale::checkpoint
