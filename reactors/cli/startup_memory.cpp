#include "rw/reactors/cli/startup_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace rw::cli {
namespace {

/// The program never writes to code, so dropping a page of it (MADV_DONTNEED, madvise(2)) loses
/// nothing: the file has it.
int drop_code(dl_phdr_info* object, std::size_t, void*) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    const bool code =
        segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && (segment.p_flags & PF_W) == 0;
    if (!code) continue;
    const auto begin = (object->dlpi_addr + segment.p_vaddr) & ~(page - 1);
    const auto end = object->dlpi_addr + segment.p_vaddr + segment.p_memsz;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void give_back_startup_code() noexcept {
  dl_iterate_phdr(drop_code, nullptr);
}

}  // namespace rw::cli
