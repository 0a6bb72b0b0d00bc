#include "sim_root/elf.h"

#include <elf.h>

#include <cstring>
#include <iterator>

namespace ndp::sim_root {
namespace {

#if defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
constexpr Elf64_Half kMachine = EM_X86_64;
#endif

template <typename T>
Elf64_Addr Append(std::string& image, const T* data, std::size_t count) {
  image.resize((image.size() + 7) & ~std::size_t{7});
  const Elf64_Addr offset = image.size();
  image.append(reinterpret_cast<const char*>(data), count * sizeof(T));
  return offset;
}

Elf64_Shdr Section(Elf64_Word name, Elf64_Word type, Elf64_Addr offset, Elf64_Xword size) {
  Elf64_Shdr section{};
  section.sh_name = name;
  section.sh_type = type;
  section.sh_flags = SHF_ALLOC;
  section.sh_addr = offset;
  section.sh_offset = offset;
  section.sh_size = size;
  section.sh_addralign = 8;
  return section;
}

}  // namespace

// One segment holds the whole file, so that address = offset everywhere. The loader needs the
// dynamic section; tools that read names (Go's debug/elf among them) need section headers as well.
std::string MakeSharedObject(std::string_view soname) {
  std::string image(sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr), '\0');

  std::string names(1, '\0');
  names.append(soname).push_back('\0');
  const Elf64_Addr strtab = Append(image, names.data(), names.size());
  const Elf64_Sym none{};
  const Elf64_Addr symtab = Append(image, &none, 1);
  const Elf64_Word hash[] = {1, 1, 0, 0};  // one bucket, one chain, both empty
  const Elf64_Addr hashtab = Append(image, hash, std::size(hash));

  const auto entry = [](Elf64_Sxword tag, Elf64_Addr value) {
    Elf64_Dyn dyn{};
    dyn.d_tag = tag;
    dyn.d_un.d_val = value;
    return dyn;
  };
  const Elf64_Dyn dynamic[] = {
      entry(DT_SONAME, 1),      entry(DT_HASH, hashtab),       entry(DT_STRTAB, strtab),
      entry(DT_SYMTAB, symtab), entry(DT_STRSZ, names.size()), entry(DT_SYMENT, sizeof(Elf64_Sym)),
      entry(DT_NULL, 0)};
  const Elf64_Addr dynamic_at = Append(image, dynamic, std::size(dynamic));

  constexpr char kSections[] = "\0.dynstr\0.dynsym\0.dynamic\0.shstrtab";
  const Elf64_Addr section_names = Append(image, kSections, sizeof kSections);
  Elf64_Shdr sections[5] = {};
  sections[1] = Section(1, SHT_STRTAB, strtab, names.size());
  sections[2] = Section(9, SHT_DYNSYM, symtab, sizeof none);
  sections[2].sh_link = 1;
  sections[2].sh_info = 1;
  sections[2].sh_entsize = sizeof(Elf64_Sym);
  sections[3] = Section(17, SHT_DYNAMIC, dynamic_at, sizeof dynamic);
  sections[3].sh_flags = SHF_ALLOC | SHF_WRITE;
  sections[3].sh_link = 1;
  sections[3].sh_entsize = sizeof(Elf64_Dyn);
  sections[4] = Section(26, SHT_STRTAB, section_names, sizeof kSections);
  sections[4].sh_flags = 0;
  sections[4].sh_addr = 0;
  const Elf64_Addr sections_at = Append(image, sections, std::size(sections));

  Elf64_Phdr load{};
  load.p_type = PT_LOAD;
  load.p_flags = PF_R | PF_W;  // the loader writes into the dynamic section
  load.p_filesz = load.p_memsz = image.size();
  load.p_align = 0x10000;  // the largest page size that is in use
  Elf64_Phdr dynamic_header{};
  dynamic_header.p_type = PT_DYNAMIC;
  dynamic_header.p_flags = PF_R | PF_W;
  dynamic_header.p_offset = dynamic_header.p_vaddr = dynamic_header.p_paddr = dynamic_at;
  dynamic_header.p_filesz = dynamic_header.p_memsz = sizeof dynamic;
  dynamic_header.p_align = 8;

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = kMachine;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof header;
  header.e_shoff = sections_at;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = std::size(sections);
  header.e_shstrndx = 4;
  std::memcpy(image.data(), &header, sizeof header);
  std::memcpy(image.data() + sizeof header, &load, sizeof load);
  std::memcpy(image.data() + sizeof header + sizeof load, &dynamic_header, sizeof dynamic_header);
  return image;
}

}  // namespace ndp::sim_root
