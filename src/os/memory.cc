#include "os/memory.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string_view>

namespace ndp::os {
namespace {

// For dl_iterate_phdr: segments that nobody can have written are the file's, whatever happens to
// the pages.
int GiveBackObject(dl_phdr_info* info, std::size_t /*size*/, void* sum) {
  const std::string_view name = info->dlpi_name;
  if (name.starts_with("linux-")) return 0;  // the vDSO is no file
  const auto page = static_cast<std::uintptr_t>(::getpagesize());
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t at = info->dlpi_addr + segment.p_vaddr;
    const std::uintptr_t begin = (at + page - 1) / page * page;
    const std::uintptr_t end = (at + segment.p_filesz) / page * page;
    if (end <= begin) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): that is how the loader names them.
    if (::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED) == 0)
      *static_cast<std::size_t*>(sum) += end - begin;
  }
  return 0;
}

}  // namespace

std::size_t GiveBackStartMemory() {
  ::malloc_trim(0);
  std::size_t sum = 0;
  ::dl_iterate_phdr(GiveBackObject, &sum);
  return sum;
}

}  // namespace ndp::os
