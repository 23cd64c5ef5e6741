// check gemm --tensors: a product that was made elsewhere, as tensors of a file.
#include "cli/cli_process.h"

#include <finescale/formats/element.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace finescale::cli {
namespace {

using testing::HasSubstr;

std::string bytes_of(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// A safetensors file, tensor by tensor.
class FileText {
 public:
  FileText& add(const std::string& name, const std::string& dtype, const std::string& shape, const std::string& bytes) {
    header_ += fmt::format(R"({}"{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", header_.empty() ? "" : ",", name, dtype, shape,
                           data_.size(), data_.size() + bytes.size());
    data_ += bytes;
    return *this;
  }
  std::string text() const {
    const std::string header = "{" + header_ + "}";
    std::string length;
    for (int byte = 0; byte < 8; ++byte) length += static_cast<char>(header.size() >> (8 * byte));
    return length + header + data_;
  }

 private:
  std::string header_, data_;
};

// A (2 x 32 f32) times B (3 x 32 nvfp4: row n holds the code of 1.0 with block scales 2^n) times a global of 0.5.
FileText product(const std::vector<float>& d) {
  std::vector<float> a;
  for (int i = 0; i < 64; ++i) a.push_back(static_cast<float>(i % 7) - 2);
  std::string scales;
  for (const float scale : {1.0f, 2.0f, 4.0f}) scales += std::string(2, static_cast<char>(E4M3::encode(scale)));
  return FileText()
      .add("a", "F32", "[2,32]", bytes_of(a))
      .add("b", "U8", "[3,16]", std::string(48, '\x22'))
      .add("b_global", "F32", "[]", bytes_of({0.5f}))
      .add("b_scale", "F8_E4M3", "[3,2]", scales)
      .add("d", "F32", "[2,3]", bytes_of(d));
}

std::vector<float> right_product() {
  std::vector<float> d;
  for (int row = 0; row < 2; ++row) {
    float sum = 0;
    for (int i = 32 * row; i < 32 * row + 32; ++i) sum += static_cast<float>(i % 7) - 2;
    for (const float scale : {1.0f, 2.0f, 4.0f}) d.push_back(sum * scale * 0.5f);
  }
  return d;
}

constexpr const char* kFormats = " --a f32 --b nvfp4 --d f32 ";

TEST(CheckTensors, passes_a_right_product_and_finds_a_wrong_output) {
  const Folder folder;
  const std::string path = folder / "product.safetensors";
  std::vector<float> d = right_product();
  write_text(path, product(d).text());
  const Ran right = run_cli("check gemm --tensors " + path + kFormats);
  EXPECT_EQ(right.exit, kOk) << right.out << right.err;
  EXPECT_THAT(right.out, HasSubstr("gemm 2 x 3 x 32"));

  d[4] += 0.25f;
  write_text(path, product(d).text());
  const Ran wrong = run_cli("check gemm --tensors " + path + kFormats);
  EXPECT_EQ(wrong.exit, kDifferences) << wrong.out << wrong.err;
  EXPECT_THAT(wrong.out, HasSubstr("0, 1, 1"));
}

TEST(CheckTensors, reads_the_epilogue) {
  const Folder folder;
  const std::string path = folder / "product.safetensors";
  std::vector<float> d = right_product();
  for (std::size_t i = 0; i < d.size(); ++i) d[i] = std::max(2 * d[i] + static_cast<float>(i % 3) - 1, 0.0f) + 3 * static_cast<float>(i);
  FileText file = product(d);
  file.add("bias", "F32", "[3]", bytes_of({-1, 0, 1})).add("residual", "F32", "[2,3]", bytes_of({0, 1, 2, 3, 4, 5}));
  write_text(path, file.text());
  const Ran ran = run_cli("check gemm --tensors " + path + kFormats + "--alpha 2 --act relu --beta 3");
  EXPECT_EQ(ran.exit, kOk) << ran.out << ran.err;
}

TEST(CheckTensors, names_what_is_missing_or_does_not_fit) {
  const Folder folder;
  const std::string path = folder / "product.safetensors";
  write_text(path, product(right_product()).text());
  struct Case {
    std::string options, sentence;
    int exit = kFiles;
  };
  for (const Case& wrong :
       {Case{" --a bf16 --b nvfp4 --d f32", "\"a\": dtype F32"}, Case{" --a f32 --b mxfp4 --d f32", "\"b_scale\""},
        Case{" --a f32 --b nvfp4 --d f32 --scale-layout scale_128x4", "\"b_scale\" has 6 bytes"},
        Case{" --a f32 --b nvfp4 --d f32 --k 16", "--k = 16"}, Case{" --a f32 --b nvfp4 --d f32 --gate second_matrix", "\"b2\" is missing"},
        Case{" --a f32 --b nvfp4 --d f32 --inject code", "--inject", kUsage}}) {
    const Ran ran = run_cli("check gemm --tensors " + path + wrong.options);
    EXPECT_EQ(ran.exit, wrong.exit) << wrong.options << ran.out << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(wrong.sentence));
  }
}

}  // namespace
}  // namespace finescale::cli
