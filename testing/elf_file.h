// Small shared libraries made by hand: all that is asked of a driver's library here is its SONAME.
#pragma once

#include <elf.h>

#include <string>
#include <string_view>
#include <vector>

namespace ndp {

struct ElfOptions {
  int sonames = 1;       // entries with the SONAME
  bool sections = true;  // false: as stripped by sstrip, program headers alone
};

// Bytes of a 64-bit little-endian shared library.
inline std::string ElfFile(std::string_view soname, ElfOptions options = {}) {
  const std::string strings = std::string(1, '\0') + std::string(soname) + std::string(1, '\0');
  const std::size_t strings_at = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr);
  const std::size_t dynamic_at = (strings_at + strings.size() + 7) / 8 * 8;

  std::vector<Elf64_Dyn> dynamic;
  const auto entry = [&](Elf64_Sxword tag, Elf64_Xword value) {
    dynamic.push_back({.d_tag = tag, .d_un = {.d_val = value}});
  };
  for (int i = 0; i < options.sonames; ++i) entry(DT_SONAME, 1);
  entry(DT_STRTAB, strings_at);
  entry(DT_STRSZ, strings.size());
  entry(DT_NULL, 0);
  const std::size_t dynamic_size = dynamic.size() * sizeof(Elf64_Dyn);
  const std::size_t sections_at = dynamic_at + dynamic_size;

  Elf64_Ehdr header{};
  std::string_view(ELFMAG).copy(reinterpret_cast<char*>(header.e_ident), SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_phoff = sizeof(Elf64_Ehdr);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  header.e_shentsize = sizeof(Elf64_Shdr);

  Elf64_Phdr load{};
  load.p_type = PT_LOAD;
  load.p_flags = PF_R;
  load.p_filesz = load.p_memsz = sections_at;
  load.p_align = 8;
  Elf64_Phdr dynamic_segment{};
  dynamic_segment.p_type = PT_DYNAMIC;
  dynamic_segment.p_offset = dynamic_segment.p_vaddr = dynamic_at;
  dynamic_segment.p_filesz = dynamic_segment.p_memsz = dynamic_size;

  std::vector<Elf64_Shdr> sections(3);
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_addr = sections[1].sh_offset = strings_at;
  sections[1].sh_size = strings.size();
  sections[2].sh_type = SHT_DYNAMIC;
  sections[2].sh_addr = sections[2].sh_offset = dynamic_at;
  sections[2].sh_size = dynamic_size;
  sections[2].sh_link = 1;
  sections[2].sh_entsize = sizeof(Elf64_Dyn);
  if (options.sections) {
    header.e_shoff = sections_at;
    header.e_shnum = 3;
  }

  std::string file;
  const auto append = [&](const void* data, std::size_t size) {
    file.append(static_cast<const char*>(data), size);
  };
  append(&header, sizeof(header));
  append(&load, sizeof(load));
  append(&dynamic_segment, sizeof(dynamic_segment));
  file += strings;
  file.resize(dynamic_at);
  append(dynamic.data(), dynamic_size);
  if (options.sections) append(sections.data(), sections.size() * sizeof(Elf64_Shdr));
  return file;
}

}  // namespace ndp
