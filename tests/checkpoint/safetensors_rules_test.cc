// Every rule of the safetensors format: what breaks one is refused with a sentence that names the tensor or field.
#include "checkpoint/safetensors.h"
#include "files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <ctime>

namespace finescale::checkpoint {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(std::string_view file) {
  const auto header = parse_safetensors(as_bytes(file));
  EXPECT_FALSE(header) << "accepted";
  EXPECT_EQ(header.status().code, header ? Code::ok : Code::io_error);
  return header.status().sentence;
}

std::string refusal(std::string_view json, std::size_t data_bytes) { return refusal(safetensors_of(json, std::string(data_bytes, '\1'))); }

std::string one_tensor(std::string_view fields) { return fmt::format(R"({{"t":{{{}}}}})", fields); }

TEST(SafetensorsRules, reads_a_good_file) {
  const std::string file =
      safetensors_of(std::vector<FileTensor>{{"a", "U8", {4}, "\1\2\3\4"}, {"b", "BF16", {1, 2}, "abcd"}, {"s", "F32", {}, raw_f32(2)}},
                     R"({"format":"pt"})");
  const auto opened = SafetensorsFile::view(as_bytes(file));
  FINESCALE_ASSERT_OK(opened);
  ASSERT_EQ(opened->tensors().size(), 3u);
  const StoredTensor* b = opened->find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->dtype, Dtype::bf16);
  EXPECT_EQ(b->shape, (Shape{1, 2}));
  EXPECT_EQ(std::to_integer<char>(opened->bytes(*b)[0]), 'a');
  EXPECT_TRUE(opened->find("s")->shape.empty());
  EXPECT_EQ(opened->metadata().at("format"), "pt");
  EXPECT_EQ(opened->find("c"), nullptr);
}

TEST(SafetensorsRules, takes_what_the_format_allows) {
  for (const std::string& file : {
           safetensors_of("{}", ""),
           safetensors_of("{}      ", ""),
           safetensors_of(R"({"__metadata__":{}})", ""),
           safetensors_of("{ \"t\" :\n {\"shape\":[2], \"data_offsets\":[0,2],\"dtype\":\"U8\"}} ", "ab"),  // any order of fields
           safetensors_of(R"({"z":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                          "ab"),
           safetensors_of(
               R"({"empty":{"dtype":"F32","shape":[0,7],"data_offsets":[1,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "a"),
           safetensors_of(one_tensor(R"("dtype":"F4","shape":[3,2],"data_offsets":[0,3])"), "abc"),
           safetensors_of(one_tensor(R"("dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3])"), "abc"),
       }) {
    EXPECT_TRUE(parse_safetensors(as_bytes(file))) << file.substr(8) << ": " << parse_safetensors(as_bytes(file)).status().sentence;
  }
}

TEST(SafetensorsRules, knows_every_dtype) {
  for (const DtypeRow& row : kDtypes) {
    const auto bytes = static_cast<std::size_t>(row.bits);  // of 8 elements
    const std::string json = one_tensor(fmt::format(R"("dtype":"{}","shape":[2,4],"data_offsets":[0,{}])", row.name, bytes));
    const std::string file = safetensors_of(json, std::string(bytes, '\0'));
    const auto header = parse_safetensors(as_bytes(file));
    FINESCALE_ASSERT_OK(header);
    EXPECT_EQ(header->tensors[0].dtype, row.dtype);
    EXPECT_THAT(refusal(json, bytes + 1), HasSubstr("1 extra bytes"));
  }
}

TEST(SafetensorsRules, header_length) {
  EXPECT_THAT(refusal(std::string("\x08\0\0", 3)), HasSubstr("3 bytes"));
  EXPECT_THAT(refusal(std::string()), HasSubstr("0 bytes"));
  EXPECT_THAT(refusal(raw(std::vector<std::uint64_t>{0}) + "{}"), HasSubstr("header length 0"));
  EXPECT_THAT(refusal(raw(std::vector<std::uint64_t>{1000000}) + "{}"), AllOf(HasSubstr("1000000"), HasSubstr("2 bytes follow")));
  EXPECT_THAT(refusal(raw(std::vector<std::uint64_t>{std::uint64_t{1} << 63}) + "{}"), HasSubstr("9223372036854775808"));
  EXPECT_THAT(refusal(raw(std::vector<std::uint64_t>{~std::uint64_t{0}}) + "{}"), HasSubstr("18446744073709551615"));
}

TEST(SafetensorsRules, json_and_padding) {
  EXPECT_THAT(refusal(R"({"t":   )", 0), HasSubstr("header"));
  EXPECT_THAT(refusal(" {}", 0), AllOf(HasSubstr("0x20"), HasSubstr("{")));
  EXPECT_THAT(refusal("[]", 0), HasSubstr("0x5b"));
  EXPECT_THAT(refusal("{}\n", 0), HasSubstr("0x0a"));
  EXPECT_THAT(refusal(std::string_view("{}\0\0", 4), 0), HasSubstr("0x00"));
  EXPECT_THAT(refusal("{}{}", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("{} }", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("{\"\xff\":{}}", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(R"({"t":1})", 0), AllOf(HasSubstr("\"t\""), HasSubstr("a number")));
  EXPECT_THAT(refusal(R"({"t":[]})", 0), AllOf(HasSubstr("\"t\""), HasSubstr("an array")));
  EXPECT_THAT(refusal(R"({"t":null})", 0), HasSubstr("null"));
  const std::string deep(1'000'000, '[');
  EXPECT_THAT(refusal(R"({"t":)" + deep + "}", 0), HasSubstr("\"t\""));
  const std::string deep_objects = [] {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += "{\"a\":";
    return text + "}";
  }();
  EXPECT_THAT(refusal(deep_objects, 0), HasSubstr("\"a\""));
}

TEST(SafetensorsRules, keys_stand_once) {
  const std::string entry = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_THAT(refusal(fmt::format(R"({{"same":{},"same":{}}})", entry, entry), 0), AllOf(HasSubstr("\"same\""), HasSubstr("twice")));
  EXPECT_THAT(refusal(R"({"__metadata__":{},"__metadata__":{}})", 0), HasSubstr("__metadata__"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"k":"1","k":"1"}})", 0), AllOf(HasSubstr("\"k\""), HasSubstr("twice")));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0])"), 0),
              AllOf(HasSubstr("dtype"), HasSubstr("twice")));
}

TEST(SafetensorsRules, fields) {
  EXPECT_THAT(refusal(one_tensor(R"("shape":[0],"data_offsets":[0,0])"), 0),
              AllOf(HasSubstr("\"t\""), HasSubstr("dtype"), HasSubstr("missing")));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"U8","data_offsets":[0,0])"), 0), HasSubstr("shape"));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"U8","shape":[0])"), 0), HasSubstr("data_offsets"));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"U8","shape":[0],"data_offsets":[0,0],"more":1)"), 0), HasSubstr("\"more\""));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"F3_X","shape":[8],"data_offsets":[0,8])"), 8), AllOf(HasSubstr("\"t\""), HasSubstr("F3_X")));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":3,"shape":[8],"data_offsets":[0,8])"), 8), HasSubstr("dtype"));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"U8","shape":8,"data_offsets":[0,8])"), 8), HasSubstr("shape"));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"U8","shape":[[8]],"data_offsets":[0,8])"), 8), HasSubstr("array in an array"));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"U8","shape":["8"],"data_offsets":[0,8])"), 8), HasSubstr("a string"));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"U8","shape":[8],"data_offsets":[0])"), 8), HasSubstr("1 numbers"));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"U8","shape":[8],"data_offsets":[0,8,9])"), 8), HasSubstr("3 numbers"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"k":1}})", 0), AllOf(HasSubstr("__metadata__"), HasSubstr("\"k\"")));
  EXPECT_THAT(refusal(R"({"__metadata__":"k"})", 0), HasSubstr("__metadata__"));
}

TEST(SafetensorsRules, numbers) {
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"U8","shape":[-8],"data_offsets":[0,8])"), 8), AllOf(HasSubstr("shape"), HasSubstr("-8")));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"U8","shape":[8],"data_offsets":[-1,8])"), 8),
              AllOf(HasSubstr("data_offsets"), HasSubstr("-1")));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"U8","shape":[8.0],"data_offsets":[0,8])"), 8), HasSubstr("8.0"));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"U8","shape":[1e1],"data_offsets":[0,8])"), 8), HasSubstr("1e1"));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,8])"), 8),
              HasSubstr("9223372036854775808"));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,8])"), 8),
              HasSubstr("99999999999999999999"));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"U8","shape":[1e999],"data_offsets":[0,8])"), 8), HasSubstr("header"));
}

TEST(SafetensorsRules, extents) {
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"U8","shape":[4],"data_offsets":[8,4])"), 8),
              AllOf(HasSubstr("[8, 4]"), HasSubstr("backwards")));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"U8","shape":[4096],"data_offsets":[0,4096])"), 8),
              AllOf(HasSubstr("4096"), HasSubstr("8 bytes")));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"F32","shape":[4],"data_offsets":[0,8])"), 8), AllOf(HasSubstr("8 bytes"), HasSubstr("16")));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"F32","shape":[8589934592,2147483648],"data_offsets":[0,8])"), 8), HasSubstr("8589934592"));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"F32","shape":[0,8589934592,2147483648],"data_offsets":[0,0])"), 0), HasSubstr("8589934592"));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"F4","shape":[3],"data_offsets":[0,2])"), 2),
              AllOf(HasSubstr("12 bits"), HasSubstr("whole number of bytes")));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"F6_E3M2","shape":[2],"data_offsets":[0,2])"), 2), HasSubstr("12 bits"));
  EXPECT_THAT(refusal(one_tensor(R"("dtype":"U8","shape":[7],"data_offsets":[1,8])"), 8), AllOf(HasSubstr("gap"), HasSubstr("1")));
  EXPECT_THAT(refusal(R"({"t":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"u":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})", 8),
              AllOf(HasSubstr("\"u\""), HasSubstr("overlap")));
  EXPECT_THAT(refusal(R"({"t":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"u":{"dtype":"U8","shape":[0],"data_offsets":[4,4]}})", 8),
              HasSubstr("overlap"));
}

// The verdict on bytes past the end is the same in every path: in memory and from a file.
TEST(SafetensorsRules, size_of_the_file) {
  const std::string good = safetensors_of(std::vector<FileTensor>{{"t", "U8", {4}, "\1\2\3\4"}});
  const std::string longer = good + std::string(16, '\0'), shorter = good.substr(0, good.size() - 1);
  EXPECT_THAT(refusal(longer), AllOf(HasSubstr("16 extra bytes"), HasSubstr("20 bytes of data")));
  EXPECT_THAT(refusal(shorter), AllOf(HasSubstr("\"t\""), HasSubstr("byte 4"), HasSubstr("3 bytes of data")));
  const TemporaryFolder folder;
  write_text(folder / "longer.safetensors", longer);
  const auto opened = SafetensorsFile::open(folder / "longer.safetensors");
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.status().sentence, AllOf(HasSubstr("longer.safetensors"), HasSubstr("16 extra bytes")));
}

TEST(SafetensorsRules, every_truncation_is_refused) {
  const std::string file = safetensors_of(modelopt_weight("m", 2, 32, 0.5f), R"({"format":"pt"})");
  ASSERT_TRUE(parse_safetensors(as_bytes(file)));
  for (std::size_t size = 0; size < file.size(); ++size) {
    // A copy of exactly that many bytes, so that a read past the end is seen by the address sanitizer.
    const std::vector<char> cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(refusal(std::string_view(cut.data(), cut.size())).empty()) << size;
  }
}

TEST(SafetensorsRules, every_flipped_bit_of_the_header_is_survived) {
  const std::string file = safetensors_of(modelopt_weight("m", 2, 32, 0.5f));
  const std::size_t header_end = 8 + file.find("}}", 8) + 2;
  for (std::size_t bit = 0; bit < 8 * header_end && bit < 8 * file.size(); ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const auto header = parse_safetensors(as_bytes(flipped));
    if (!header) {
      EXPECT_FALSE(header.status().sentence.empty());
      continue;
    }
    for (const StoredTensor& tensor : header->tensors) {
      EXPECT_LE(header->data_start + tensor.end, static_cast<std::int64_t>(flipped.size()));
    }
  }
}

TEST(SafetensorsRules, files_that_are_not_files) {
  const TemporaryFolder folder;
  EXPECT_THAT(SafetensorsFile::open(folder / "absent").status().sentence, HasSubstr("absent"));
  EXPECT_THAT(SafetensorsFile::open(folder.path()).status().sentence, HasSubstr("not a regular file"));
  EXPECT_THAT(SafetensorsFile::open("/dev/null").status().sentence, HasSubstr("not a regular file"));
  write_text(folder / "empty", "");
  EXPECT_THAT(SafetensorsFile::open(folder / "empty").status().sentence, HasSubstr("0 bytes"));
}

// 100,000 tensors take well under a second in a release build; the bound leaves room for sanitizers and busy machines.
TEST(SafetensorsRules, a_hundred_thousand_tensors) {
  constexpr int kTensors = 100'000;
  std::string json = "{";
  for (int i = 0; i < kTensors; ++i) {
    json += fmt::format(
        "{}\"model.layers.{}.mlp.experts.{}.down_proj.weight_scale\":{{\"dtype\":\"U8\",\"shape\":[1,1],\"data_offsets\":[{},{}]}}",
        i == 0 ? "" : ",", i / 256, i % 256, i, i + 1);
  }
  const TemporaryFolder folder;
  write_text(folder / "many.safetensors", safetensors_of(json + "}", std::string(kTensors, '\7')));
  const std::clock_t start = std::clock();  // of this process, whatever else the machine does
  const auto opened = Checkpoint::open(folder / "many.safetensors");
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  FINESCALE_ASSERT_OK(opened);
  EXPECT_EQ(opened->tensors().size(), static_cast<std::size_t>(kTensors));
  if (FINESCALE_SANITIZED == 0) {  // a sanitizer's own work is not the reader's
    EXPECT_LT(seconds, 2.0);
  }
  RecordProperty("seconds", fmt::format("{:.3f}", seconds));
}

}  // namespace
}  // namespace finescale::checkpoint
