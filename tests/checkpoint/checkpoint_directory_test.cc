// Directories: shards, index, numbering, companions.
#include "checkpoint/checkpoint.h"
#include "files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace finescale::checkpoint {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kFirst = "model-00001-of-00002.safetensors";
constexpr const char* kSecond = "model-00002-of-00002.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

std::string index_of(std::string_view weight_map) { return fmt::format(R"({{"metadata":{{}},"weight_map":{{{}}}}})", weight_map); }

class CheckpointDirectory : public testing::Test {
 protected:
  CheckpointDirectory() {
    write_text(folder_ / kFirst, safetensors_of(std::vector<FileTensor>{plain_f32("a.weight", 2, 16)}));
    write_text(folder_ / kSecond, safetensors_of(std::vector<FileTensor>{plain_f32("b.weight", 1, 16, 2.0f)}));
    write_text(folder_ / kIndex, index_of(fmt::format(R"("a.weight":"{}","b.weight":"{}")", kFirst, kSecond)));
  }

  std::string refusal() {
    const auto opened = Checkpoint::open(folder_.path());
    EXPECT_FALSE(opened);
    EXPECT_EQ(opened.status().code, opened ? Code::ok : Code::io_error);
    return opened.status().sentence;
  }

  TemporaryFolder folder_;
};

TEST_F(CheckpointDirectory, joins_the_shards) {
  const auto opened = Checkpoint::open(folder_.path());
  FINESCALE_ASSERT_OK(opened);
  EXPECT_TRUE(opened->is_directory());
  EXPECT_EQ(opened->shard_count(), 2u);
  EXPECT_EQ(opened->index_name(), kIndex);
  ASSERT_NE(opened->find("b.weight"), nullptr);
  EXPECT_EQ(opened->shard_name(opened->find("b.weight")->shard), kSecond);
  EXPECT_EQ(floats_of(*opened->find("b.weight"))[0], 2.0f);
}

TEST_F(CheckpointDirectory, a_missing_shard_is_named) {
  fs::remove(folder_ / kSecond);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(kSecond), HasSubstr("missing"), HasSubstr("b.weight")));
  fs::remove(folder_ / kIndex);  // the number in the other's name says so too
  EXPECT_THAT(refusal(), AllOf(HasSubstr(kSecond), HasSubstr("missing")));
}

TEST_F(CheckpointDirectory, a_tensor_in_no_shard) {
  write_text(folder_ / kIndex, index_of(fmt::format(R"("a.weight":"{}","b.weight":"{}","c.weight":"{}")", kFirst, kSecond, kSecond)));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("\"c.weight\""), HasSubstr("in no shard"), HasSubstr(kSecond)));
}

TEST_F(CheckpointDirectory, a_tensor_in_the_wrong_shard) {
  write_text(folder_ / kIndex, index_of(fmt::format(R"("a.weight":"{}","b.weight":"{}")", kSecond, kFirst)));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("\"a.weight\""), HasSubstr(kFirst), HasSubstr(kSecond)));
}

TEST_F(CheckpointDirectory, a_tensor_that_the_index_lacks) {
  write_text(folder_ / kSecond, safetensors_of(std::vector<FileTensor>{plain_f32("b.weight", 1, 16), plain_f32("stray", 1, 1)}));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("\"stray\""), HasSubstr("not in model.safetensors.index.json")));
}

TEST_F(CheckpointDirectory, a_tensor_in_two_shards) {
  write_text(folder_ / kSecond, safetensors_of(std::vector<FileTensor>{plain_f32("b.weight", 1, 16), plain_f32("a.weight", 2, 16)}));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("\"a.weight\""), HasSubstr(kFirst), HasSubstr(kSecond)));
}

TEST_F(CheckpointDirectory, a_broken_shard_is_named) {
  write_text(folder_ / kSecond, read_text(folder_ / kSecond) + "1");
  EXPECT_THAT(refusal(), AllOf(HasSubstr(kSecond), HasSubstr("1 extra bytes")));
}

TEST_F(CheckpointDirectory, bad_indexes) {
  for (const std::string& text : std::vector<std::string>{
           "",
           "[]",
           "{",
           R"({"weight_map":[]})",
           R"({"metadata":{}})",
           index_of(R"("a.weight":7)"),
           index_of(fmt::format(R"("a.weight":"{0}","a.weight":"{0}")", kFirst)),
           std::string(100'000, '['),
       }) {
    write_text(folder_ / kIndex, text);
    EXPECT_THAT(refusal(), HasSubstr(kIndex)) << text.substr(0, 80);
  }
  for (const char* name : {"../elsewhere.safetensors", "/etc/passwd", "..", ".", "", "a\\u0000b"}) {
    write_text(folder_ / kIndex, index_of(fmt::format(R"("a.weight":"{}")", name)));
    EXPECT_THAT(refusal(), AllOf(HasSubstr("a.weight"), HasSubstr("not the name of a file in this directory"))) << name;
  }
  write_text(folder_ / kIndex, std::string(1000, '[') + std::string(1000, ']'));
  EXPECT_THAT(refusal(), HasSubstr("nested deeper than 64"));
  write_text(folder_ / "other.safetensors.index.json", "{}");
  EXPECT_THAT(refusal(), HasSubstr("two indexes"));
}

TEST_F(CheckpointDirectory, other_files_are_kept_or_mentioned) {
  fs::create_directories(folder_ / "1_Pooling");
  fs::create_directories(folder_ / ".cache");
  write_text(folder_ / "config.json", "{}");
  write_text(folder_ / "tokenizer.json", "{}");
  write_text(folder_ / "1_Pooling/config.json", "{}");
  write_text(folder_ / ".cache/lock", "");
  write_text(folder_ / "pytorch_model.bin", "");
  write_text(folder_ / "adapter.safetensors", safetensors_of("{}", ""));
  const auto opened = Checkpoint::open(folder_.path());
  FINESCALE_ASSERT_OK(opened);
  EXPECT_THAT(opened->companions(), ElementsAre("1_Pooling/config.json", "config.json", "tokenizer.json"));
  EXPECT_THAT(opened->notes(), AllOf(Contains(HasSubstr("pytorch_model.bin")), Contains(HasSubstr("adapter.safetensors"))));
  EXPECT_NE(opened->config(kConfigFile), nullptr);
  EXPECT_EQ(opened->config(kModelOptConfigFile), nullptr);
}

TEST(CheckpointFolder, without_weights) {
  const TemporaryFolder folder;
  EXPECT_THAT(Checkpoint::open(folder.path()).status().sentence, HasSubstr("no *.safetensors"));
  EXPECT_THAT(Checkpoint::open(folder / "absent").status().sentence, HasSubstr("absent"));
}

// Download caches are folders of links.
TEST(CheckpointFolder, follows_links_to_files) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "blobs");
  fs::create_directories(folder / "snapshot");
  write_text(folder / "blobs/123", safetensors_of(std::vector<FileTensor>{plain_f32("a.weight", 1, 16)}));
  fs::create_symlink(folder / "blobs/123", folder / "snapshot/model.safetensors");
  FINESCALE_ASSERT_OK(Checkpoint::open(folder / "snapshot"));
}

}  // namespace
}  // namespace finescale::checkpoint
