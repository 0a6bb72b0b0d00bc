#include "cdi/elf.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "testing/elf_file.h"
#include "testing/result_matchers.h"

namespace ndp::cdi {
namespace {

using testing::HasSubstr;
using testing::Optional;

Result<std::optional<std::string>> Read(const std::string& file) {
  return ReadSoname(std::as_bytes(std::span(file)));
}

template <typename T>
void Poke(std::string& file, std::size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof(value));
}

TEST(ElfTest, ReadsTheSoname) {
  EXPECT_THAT(Read(ElfFile("libcuda.so.1")), IsOkAnd(Optional(std::string("libcuda.so.1"))));
}

TEST(ElfTest, ReadsFilesWithoutSectionsAsTheLoaderDoes) {
  EXPECT_THAT(Read(ElfFile("libcuda.so.1", {.sections = false})),
              IsOkAnd(Optional(std::string("libcuda.so.1"))));
}

TEST(ElfTest, ALibraryMayHaveNone) {
  EXPECT_THAT(Read(ElfFile("x", {.sonames = 0})), IsOkAnd(std::nullopt));
}

TEST(ElfTest, TwoAreRefused) {
  EXPECT_THAT(Read(ElfFile("x", {.sonames = 2})),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("more than one")));
}

TEST(ElfTest, OtherFilesAreRefused) {
  EXPECT_THAT(Read(""), IsError(Code::kInvalidArgument));
  EXPECT_THAT(Read(std::string(100, 'x')), IsErrorThat(Code::kInvalidArgument, HasSubstr("magic")));
  std::string narrow = ElfFile("x");
  narrow[EI_CLASS] = ELFCLASS32;
  EXPECT_THAT(Read(narrow), IsErrorThat(Code::kInvalidArgument, HasSubstr("64-bit")));
}

TEST(ElfTest, EveryTruncationIsRefusedOrRead) {
  for (bool sections : {true, false}) {
    const std::string file = ElfFile("libcuda.so.1", {.sections = sections});
    for (std::size_t size = 0; size < file.size(); ++size) {
      auto soname = Read(file.substr(0, size));
      if (soname.ok()) {
        EXPECT_THAT(*soname, Optional(std::string("libcuda.so.1"))) << size;
      }
    }
  }
}

TEST(ElfTest, OffsetsBeyondTheFileAreRefused) {
  std::string far_sections = ElfFile("x");
  Poke<Elf64_Off>(far_sections, offsetof(Elf64_Ehdr, e_shoff), ~0ULL - 8);
  EXPECT_THAT(Read(far_sections), IsError(Code::kInvalidArgument));

  std::string far_string = ElfFile("x");
  const std::size_t dynamic_at = (sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr) + 3 + 7) / 8 * 8;
  Poke<Elf64_Xword>(far_string, dynamic_at + offsetof(Elf64_Dyn, d_un), ~0ULL);
  EXPECT_THAT(Read(far_string),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("outside its string table")));
}

TEST(ElfTest, ANameWithoutAnEndIsRefused) {
  EXPECT_THAT(Read(ElfFile(std::string(5000, 'x'))),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("does not end")));
}

}  // namespace
}  // namespace ndp::cdi
