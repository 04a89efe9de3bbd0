// Preloaded: on demand, operator new fails where one library calls it, and nowhere else.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <new>

namespace {

std::atomic<uintptr_t> low{0}, high{0};
std::atomic<bool> is_failing{false};
std::atomic<unsigned long> failures{0};

int findObject(dl_phdr_info *info, size_t, void *inside) {
  auto address = reinterpret_cast<uintptr_t>(inside);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto &segment = info->dlpi_phdr[i];
    uintptr_t begin = info->dlpi_addr + segment.p_vaddr, end = begin + segment.p_memsz;
    if (segment.p_type == PT_LOAD && begin <= address && address < end) {
      low = begin; // of the code, which is one segment
      high = end;
      return 1;
    }
  }
  return 0;
}

void *allocate(size_t bytes, size_t alignment, const void *caller) {
  auto address = reinterpret_cast<uintptr_t>(caller);
  if (is_failing && low <= address && address < high) {
    ++failures;
    throw std::bad_alloc();
  }
  bytes = (bytes + alignment) / alignment * alignment;
  void *block = std::aligned_alloc(alignment, bytes);
  if (!block) {
    throw std::bad_alloc();
  }
  return block;
}

constexpr size_t kUsual = alignof(std::max_align_t);

} // namespace

void *operator new(size_t bytes) {
  return allocate(bytes, kUsual, __builtin_return_address(0));
}
void *operator new[](size_t bytes) {
  return allocate(bytes, kUsual, __builtin_return_address(0));
}
void *operator new(size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<size_t>(alignment), __builtin_return_address(0));
}
void *operator new[](size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<size_t>(alignment), __builtin_return_address(0));
}

// The library is the one whose code has this address.
extern "C" void no_memory_for(void *inside) {
  dl_iterate_phdr(findObject, inside);
}
extern "C" void no_memory_fail(int is_wanted) {
  is_failing = is_wanted != 0;
}
extern "C" unsigned long no_memory_failures() {
  return failures;
}
