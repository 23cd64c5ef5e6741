// The writer: what it writes is read back, every tensor lies aligned, and nothing stands under the final name until all is there.
#include "checkpoint/safetensors_writer.h"
#include "files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>

namespace finescale::checkpoint {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<TensorSpec> kSpecs = {{"odd", Dtype::u8, {3}},
                                        {"scalar", Dtype::f32, {}},
                                        {"a \"quoted\" \n name", Dtype::bf16, {1, 2}},
                                        {"empty", Dtype::f64, {0, 4}},
                                        {"nibbles", Dtype::f4, {2, 3}}};

Status write_all(const fs::path& path, Existing existing = Existing::refuse) {
  auto writer = SafetensorsWriter::create(path, kSpecs, {{"format", "pt"}}, existing);
  FINESCALE_TRY(writer);
  FINESCALE_TRY(writer->append(0, as_bytes("x")));  // in pieces
  FINESCALE_TRY(writer->append(4, as_bytes("nib")));
  FINESCALE_TRY(writer->append(2, as_bytes("bf16")));
  FINESCALE_TRY(writer->append(1, as_bytes("f32!")));
  FINESCALE_TRY(writer->append(0, as_bytes("yz")));
  return writer->commit();
}

TEST(SafetensorsWriter, writes_what_the_reader_reads) {
  const TemporaryFolder folder;
  FINESCALE_ASSERT_OK(write_all(folder / "a.safetensors"));
  const auto file = Checkpoint::open(folder / "a.safetensors");
  FINESCALE_ASSERT_OK(file);
  EXPECT_EQ(file->shard_metadata(0).at("format"), "pt");
  ASSERT_EQ(file->tensors().size(), kSpecs.size());
  for (const TensorSpec& spec : kSpecs) {
    const Tensor* tensor = file->find(spec.name);
    ASSERT_NE(tensor, nullptr) << spec.name;
    EXPECT_EQ(tensor->dtype, spec.dtype);
    EXPECT_EQ(tensor->shape, spec.shape);
  }
  EXPECT_EQ(bytes_of(*file->find("odd")), "xyz");
  EXPECT_EQ(bytes_of(*file->find("scalar")), "f32!");
  EXPECT_EQ(bytes_of(*file->find("nibbles")), "nib");
  EXPECT_THAT(names_in(folder.path()), ElementsAre("a.safetensors"));
}

TEST(SafetensorsWriter, aligns_every_tensor_to_its_element) {
  const TemporaryFolder folder;
  FINESCALE_ASSERT_OK(write_all(folder / "a.safetensors"));
  const std::string text = read_text(folder / "a.safetensors");
  const auto header = parse_safetensors(as_bytes(text));
  FINESCALE_ASSERT_OK(header);
  EXPECT_EQ(header->data_start % 64, 0);
  for (const StoredTensor& tensor : header->tensors) {
    const int width = std::max(bits(tensor.dtype) / 8, 1);
    EXPECT_EQ((header->data_start + tensor.begin) % width, 0) << tensor.name;
  }
}

TEST(SafetensorsWriter, refuses_names_that_collide) {
  const TemporaryFolder folder;
  const auto twice = SafetensorsWriter::create(folder / "a", {{"t", Dtype::u8, {}}, {"t", Dtype::u8, {}}}, {}, Existing::refuse);
  EXPECT_THAT(twice.status().sentence, AllOf(HasSubstr("\"t\""), HasSubstr("twice")));
  EXPECT_THAT(SafetensorsWriter::create(folder / "a", {{"__metadata__", Dtype::u8, {}}}, {}, Existing::refuse).status().sentence,
              HasSubstr("reserved"));
  EXPECT_THAT(SafetensorsWriter::create(folder / "a", {{"half", Dtype::f4, {1}}}, {}, Existing::refuse).status().sentence,
              HasSubstr("whole number of bytes"));
  EXPECT_THAT(names_in(folder.path()), IsEmpty());
}

TEST(SafetensorsWriter, never_shows_an_incomplete_file) {
  const TemporaryFolder folder;
  {
    auto writer = SafetensorsWriter::create(folder / "a", kSpecs, {}, Existing::refuse);
    FINESCALE_ASSERT_OK(writer);
    EXPECT_FALSE(fs::exists(folder / "a"));
    EXPECT_THAT(writer->append(1, as_bytes("five!")).sentence, AllOf(HasSubstr("5 bytes"), HasSubstr("4 left")));
    FINESCALE_ASSERT_OK(writer->append(1, as_bytes("f32!")));
    EXPECT_THAT(writer->commit().sentence, AllOf(HasSubstr("\"odd\""), HasSubstr("never written")));
    EXPECT_FALSE(fs::exists(folder / "a"));
  }
  EXPECT_THAT(names_in(folder.path()), IsEmpty());
}

TEST(SafetensorsWriter, replaces_only_when_told) {
  const TemporaryFolder folder;
  write_text(folder / "a", "old");
  const Status refused = write_all(folder / "a");
  EXPECT_EQ(refused.code, Code::invalid_argument);
  EXPECT_THAT(refused.sentence, HasSubstr("exists already"));
  EXPECT_EQ(read_text(folder / "a"), "old");
  FINESCALE_ASSERT_OK(write_all(folder / "a", Existing::replace));
  EXPECT_TRUE(SafetensorsFile::open(folder / "a"));
  EXPECT_THAT(names_in(folder.path()), ElementsAre("a"));
  EXPECT_THAT(write_all(folder.path(), Existing::replace).sentence, HasSubstr("directory"));
  EXPECT_THAT(write_all(folder / "no/such/folder/a").sentence, HasSubstr("no/such/folder"));
}

// A name that appears while the file is being written is not overwritten either.
TEST(SafetensorsWriter, a_late_rival_keeps_its_name) {
  const TemporaryFolder folder;
  auto file = AtomicFile::create(folder / "a", Existing::refuse);
  FINESCALE_ASSERT_OK(file);
  write_text(folder / "a", "rival");
  EXPECT_THAT(file->commit().sentence, HasSubstr("exists already"));
  EXPECT_EQ(read_text(folder / "a"), "rival");
}

// Runs `body` in a child process and returns how it ended, as waitpid says.
template <class Body>
int in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int ending = 0;
  waitpid(child, &ending, 0);
  return ending;
}

TEST(SafetensorsWriter, a_kill_in_the_middle_leaves_no_file) {
  const TemporaryFolder folder;
  const int ending = in_child([&] {
    auto writer = SafetensorsWriter::create(folder / "a", kSpecs, {}, Existing::refuse);
    if (writer && writer->append(1, as_bytes("f32!"))) raise(SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(ending) && WTERMSIG(ending) == SIGKILL);
  EXPECT_FALSE(fs::exists(folder / "a"));
  EXPECT_EQ(names_in(folder.path()).size(), 1u);  // the hidden temporary, which nobody was left to remove
  FINESCALE_ASSERT_OK(write_all(folder / "a"));   // and which stands in nobody's way
}

// A limit on the size of files stands for a full disk: writes fail in the middle.
TEST(SafetensorsWriter, a_full_disk_leaves_nothing) {
  const TemporaryFolder folder;
  const int ending = in_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{5000, 5000};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto writer = SafetensorsWriter::create(folder / "a", {{"large", Dtype::u8, {20000}}}, {}, Existing::refuse);
    if (!writer) _exit(1);
    const Status status = writer->append(0, as_bytes(std::string(20000, 'x')));
    if (status.code != Code::io_error || status.sentence.find("File too large") == std::string::npos) _exit(2);
    if (writer->commit()) _exit(3);
  });
  EXPECT_TRUE(WIFEXITED(ending) && WEXITSTATUS(ending) == 0) << ending;
}

TEST(AtomicDirectory, appears_whole_or_not_at_all) {
  const TemporaryFolder folder;
  {
    auto directory = AtomicDirectory::create(folder / "model", Existing::refuse);
    FINESCALE_ASSERT_OK(directory);
    write_text(directory->folder() / "x.safetensors", "1");
    EXPECT_FALSE(fs::exists(folder / "model"));
  }
  EXPECT_THAT(names_in(folder.path()), IsEmpty());
  auto directory = AtomicDirectory::create(folder / "model", Existing::refuse);
  FINESCALE_ASSERT_OK(directory);
  write_text(directory->folder() / "x.safetensors", "1");
  FINESCALE_ASSERT_OK(directory->commit());
  EXPECT_THAT(names_in(folder / "model"), ElementsAre("x.safetensors"));
  EXPECT_THAT(names_in(folder.path()), ElementsAre("model"));
}

TEST(AtomicDirectory, replaces_checkpoints_only) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "model");
  write_text(folder / "model/old.safetensors", "old");
  EXPECT_THAT(AtomicDirectory::create(folder / "model", Existing::refuse).status().sentence, HasSubstr("exists already"));
  auto directory = AtomicDirectory::create(folder / "model/", Existing::replace);
  FINESCALE_ASSERT_OK(directory);
  write_text(directory->folder() / "fresh.safetensors", "1");
  FINESCALE_ASSERT_OK(directory->commit());
  EXPECT_THAT(names_in(folder / "model"), ElementsAre("fresh.safetensors"));
  EXPECT_THAT(names_in(folder.path()), ElementsAre("model"));

  fs::create_directory(folder / "photos");
  write_text(folder / "photos/cat.jpg", "miaow");
  EXPECT_THAT(AtomicDirectory::create(folder / "photos", Existing::replace).status().sentence, HasSubstr("no *.safetensors"));
  EXPECT_EQ(read_text(folder / "photos/cat.jpg"), "miaow");
}

}  // namespace
}  // namespace finescale::checkpoint
