#include "core/lazy_array.h"

#include <atomic>
#include <cstdint>
#include <new>
#include <sys/mman.h>

namespace deepcontext {

namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kLineBytes = 64;
constexpr size_t kLinesBetween = 7;

/// Where in its first page an array begins: were it the page's start, the first elements of all
/// arrays would share a few lines of the first-level cache, and those are the ones in use.
size_t nextOffset() {
  static std::atomic<size_t> arrays{0};
  size_t number = arrays.fetch_add(1, std::memory_order_relaxed);
  return number * kLinesBetween * kLineBytes % kPageBytes;
}

} // namespace

void *mapZeroPages(size_t bytes) {
  void *mapped =
      mmap(nullptr, bytes + kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    throw std::bad_alloc();
  }
  return static_cast<char *>(mapped) + nextOffset();
}

void unmapPages(void *begin, size_t bytes) {
  if (begin) {
    auto offset = reinterpret_cast<uintptr_t>(begin) % kPageBytes;
    munmap(static_cast<char *>(begin) - offset, bytes + kPageBytes);
  }
}

} // namespace deepcontext
