// Preloaded: on demand, operator new and malloc fail where one library calls them, and nowhere
// else. A library with its own operator new, as in a wheel, calls malloc from there.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <new>

// glibc's own names of what this file replaces.
extern "C" void *__libc_malloc(size_t bytes);
extern "C" void *__libc_memalign(size_t alignment, size_t bytes);

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

bool fails(const void *caller) {
  auto address = reinterpret_cast<uintptr_t>(caller);
  bool is_refused = is_failing && low <= address && address < high;
  failures += is_refused;
  return is_refused;
}

void *allocate(size_t bytes, size_t alignment, const void *caller) {
  if (fails(caller)) {
    throw std::bad_alloc();
  }
  bytes = (bytes + alignment) / alignment * alignment;
  void *block = __libc_memalign(alignment, bytes);
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

extern "C" void *malloc(size_t bytes) noexcept {
  return fails(__builtin_return_address(0)) ? nullptr : __libc_malloc(bytes);
}
extern "C" void *aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return fails(__builtin_return_address(0)) ? nullptr : __libc_memalign(alignment, bytes);
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
