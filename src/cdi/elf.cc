#include "cdi/elf.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

namespace ndp::cdi {
namespace {

static_assert(std::endian::native == std::endian::little, "both GPU platforms are");

// Far beyond any real library: NVIDIA's have fewer than 50 headers and 100 dynamic entries.
constexpr std::size_t kMaxHeaders = 4096;
constexpr std::size_t kMaxDynamicEntries = 4096;
constexpr std::size_t kMaxSoname = 255;

Error Broken(std::string_view what) {
  return {Code::kInvalidArgument, fmt::format("no usable ELF file: {}", what)};
}

template <typename T>
Result<T> ReadStruct(const ReadAt& read, std::uint64_t offset, std::string_view what) {
  T value;
  if (read(offset, std::as_writable_bytes(std::span(&value, 1))) != sizeof(T)) return Broken(what);
  return value;
}

template <typename T>
Result<std::vector<T>> ReadTable(const ReadAt& read, std::uint64_t offset, std::size_t count,
                                 std::string_view what) {
  std::vector<T> table(count);
  std::size_t got = read(offset, std::as_writable_bytes(std::span(table)));
  if (got != count * sizeof(T)) return Broken(what);
  return table;
}

// Where in the file the dynamic entries are, and the strings they point into.
struct Dynamic {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t strings = 0;
  std::uint64_t strings_size = 0;
};

// By section headers: what tools see, and the way upstream reads it.
Result<std::optional<Dynamic>> FindBySections(const ReadAt& read, const Elf64_Ehdr& header) {
  if (header.e_shoff == 0 || header.e_shnum == 0) return std::optional<Dynamic>();
  if (header.e_shnum > kMaxHeaders || header.e_shentsize != sizeof(Elf64_Shdr)) {
    return Broken("section headers");
  }
  NDP_TRY(auto sections,
          ReadTable<Elf64_Shdr>(read, header.e_shoff, header.e_shnum, "section headers"));
  auto dynamic = std::ranges::find(sections, Elf64_Word{SHT_DYNAMIC}, &Elf64_Shdr::sh_type);
  if (dynamic == sections.end()) return std::optional<Dynamic>();
  if (dynamic->sh_link >= sections.size()) return Broken("string table of the dynamic section");
  const Elf64_Shdr& strings = sections[dynamic->sh_link];
  return std::optional(Dynamic{.offset = dynamic->sh_offset,
                               .size = dynamic->sh_size,
                               .strings = strings.sh_offset,
                               .strings_size = strings.sh_size});
}

Result<std::vector<Elf64_Dyn>> ReadEntries(const ReadAt& read, std::uint64_t offset,
                                           std::uint64_t size) {
  std::size_t count = std::min<std::uint64_t>(size / sizeof(Elf64_Dyn), kMaxDynamicEntries);
  NDP_TRY(auto entries, ReadTable<Elf64_Dyn>(read, offset, count, "dynamic entries"));
  auto end = std::ranges::find(entries, Elf64_Sxword{DT_NULL}, &Elf64_Dyn::d_tag);
  entries.erase(end, entries.end());
  return entries;
}

// By program headers: what the dynamic loader sees. For files stripped of their sections.
Result<std::optional<Dynamic>> FindBySegments(const ReadAt& read, const Elf64_Ehdr& header) {
  if (header.e_phoff == 0 || header.e_phnum == 0) return std::optional<Dynamic>();
  if (header.e_phnum > kMaxHeaders || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return Broken("program headers");
  }
  NDP_TRY(auto segments,
          ReadTable<Elf64_Phdr>(read, header.e_phoff, header.e_phnum, "program headers"));
  auto dynamic = std::ranges::find(segments, Elf64_Word{PT_DYNAMIC}, &Elf64_Phdr::p_type);
  if (dynamic == segments.end()) return std::optional<Dynamic>();
  NDP_TRY(auto entries, ReadEntries(read, dynamic->p_offset, dynamic->p_filesz));
  Dynamic found{.offset = dynamic->p_offset, .size = dynamic->p_filesz};
  std::uint64_t address = 0;
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_STRTAB) address = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRSZ) found.strings_size = entry.d_un.d_val;
  }
  for (const Elf64_Phdr& segment : segments) {
    bool holds = segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
                 address - segment.p_vaddr < segment.p_filesz;
    if (!holds) continue;
    std::uint64_t into = address - segment.p_vaddr;
    found.strings = segment.p_offset + into;
    found.strings_size = std::min(found.strings_size, segment.p_filesz - into);
    return std::optional(found);
  }
  return Broken("string table of the dynamic segment");
}

Result<std::string> ReadString(const ReadAt& read, const Dynamic& dynamic, std::uint64_t at) {
  if (at >= dynamic.strings_size) return Broken("SONAME lies outside its string table");
  std::string text(std::min<std::uint64_t>(kMaxSoname + 1, dynamic.strings_size - at), '\0');
  std::size_t got = read(dynamic.strings + at, std::as_writable_bytes(std::span(text)));
  std::size_t end = text.substr(0, got).find('\0');
  if (end == std::string::npos) return Broken("SONAME does not end");
  text.resize(end);
  return text;
}

}  // namespace

Result<std::optional<std::string>> ReadSoname(const ReadAt& read) {
  NDP_TRY(auto header, ReadStruct<Elf64_Ehdr>(read, 0, "too short"));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return Broken("no ELF magic");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return Broken("not 64-bit little-endian");
  }
  NDP_TRY(auto dynamic, FindBySections(read, header));
  if (!dynamic && header.e_shnum == 0) {
    NDP_TRY(dynamic, FindBySegments(read, header));
  }
  if (!dynamic) return std::optional<std::string>();
  NDP_TRY(auto entries, ReadEntries(read, dynamic->offset, dynamic->size));
  std::optional<std::string> soname;
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag != DT_SONAME) continue;
    if (soname) return Broken("more than one SONAME");
    NDP_TRY(soname, ReadString(read, *dynamic, entry.d_un.d_val));
  }
  return soname;
}

Result<std::optional<std::string>> ReadSoname(std::span<const std::byte> file) {
  return ReadSoname([file](std::uint64_t offset, std::span<std::byte> into) -> std::size_t {
    if (offset >= file.size()) return 0;
    std::size_t count = std::min<std::uint64_t>(into.size(), file.size() - offset);
    std::ranges::copy(file.subspan(offset, count), into.begin());
    return count;
  });
}

}  // namespace ndp::cdi
