#include "torch/import_slot.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace deepcontext::torch {

namespace {

#if defined(__aarch64__)
constexpr uint32_t kJumpSlot = R_AARCH64_JUMP_SLOT;
#else
constexpr uint32_t kJumpSlot = R_X86_64_JUMP_SLOT;
#endif

/// The tables of a library's dynamic section that lead to its slots.
struct Tables {
  const ElfW(Sym) *symbols = nullptr;
  const char *strings = nullptr;
  const ElfW(Rela) *relocations = nullptr;
  size_t count = 0;
};

Tables readTables(const link_map *library) {
  Tables tables;
  for (const ElfW(Dyn) *entry = library->l_ld; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
    case DT_SYMTAB:
      tables.symbols = reinterpret_cast<const ElfW(Sym) *>(entry->d_un.d_ptr);
      break;
    case DT_STRTAB:
      tables.strings = reinterpret_cast<const char *>(entry->d_un.d_ptr);
      break;
    case DT_JMPREL:
      tables.relocations = reinterpret_cast<const ElfW(Rela) *>(entry->d_un.d_ptr);
      break;
    case DT_PLTRELSZ:
      tables.count = entry->d_un.d_val / sizeof(ElfW(Rela));
      break;
    default:
      break;
    }
  }
  return tables;
}

/// Addresses of the library loaded at `base`, from its program headers.
struct Extent {
  uintptr_t base;
  uintptr_t begin = UINTPTR_MAX;
  uintptr_t end = 0;
  uintptr_t closed_begin = 0; // pages that the linker makes read-only
  uintptr_t closed_end = 0;
};

int readExtent(dl_phdr_info *info, size_t, void *data) {
  auto *extent = static_cast<Extent *>(data);
  if (info->dlpi_addr != extent->base) {
    return 0;
  }
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) &header = info->dlpi_phdr[i];
    uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    uintptr_t end = begin + header.p_memsz;
    if (header.p_type == PT_LOAD) {
      extent->begin = std::min(extent->begin, begin);
      extent->end = std::max(extent->end, end);
    } else if (header.p_type == PT_GNU_RELRO) {
      uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
      extent->closed_begin = begin & ~(page - 1);
      extent->closed_end = end & ~(page - 1);
    }
  }
  return 1;
}

} // namespace

bool ImportSlot::find(const char *library, const char *symbol, std::string *reason) {
  place_ = nullptr;
  void *handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY);
  if (!handle) {
    *reason = std::string(library) + " is not loaded in this process";
    return false;
  }
  link_map *map = nullptr;
  int error = dlinfo(handle, RTLD_DI_LINKMAP, &map);
  dlclose(handle); // stays loaded: libraries of frameworks are never unloaded
  if (error != 0 || !map) {
    *reason = std::string("the linker does not describe ") + library;
    return false;
  }
  Tables tables = readTables(map);
  for (size_t i = 0; tables.symbols && tables.strings && i < tables.count; ++i) {
    const ElfW(Rela) &relocation = tables.relocations[i];
    const ElfW(Sym) &imported = tables.symbols[ELF64_R_SYM(relocation.r_info)];
    if (ELF64_R_TYPE(relocation.r_info) == kJumpSlot &&
        std::strcmp(tables.strings + imported.st_name, symbol) == 0) {
      place_ = reinterpret_cast<void **>(map->l_addr + relocation.r_offset);
    }
  }
  if (!place_) {
    *reason = std::string(library) + " does not call " + symbol + " through a slot";
    return false;
  }
  Extent extent{map->l_addr};
  dl_iterate_phdr(readExtent, &extent);
  auto place = reinterpret_cast<uintptr_t>(place_);
  is_read_only_ = place >= extent.closed_begin && place < extent.closed_end;
  begin_ = reinterpret_cast<const void *>(extent.begin);
  end_ = reinterpret_cast<const void *>(extent.end);
  return true;
}

void *ImportSlot::target() const {
  void *value = __atomic_load_n(place_, __ATOMIC_ACQUIRE);
  return value >= begin_ && value < end_ ? nullptr : value;
}

void ImportSlot::set(void *function) {
  auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  void *page = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(place_) & ~(page_bytes - 1));
  if (is_read_only_ && mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) {
    return; // a process at its limit of mappings (vm.max_map_count) may not split one more
  }
  __atomic_store_n(place_, function, __ATOMIC_RELEASE);
  if (is_read_only_) {
    mprotect(page, page_bytes, PROT_READ);
  }
}

} // namespace deepcontext::torch
