#include "core/lazy_array.h"

#include <new>
#include <sys/mman.h>

namespace deepcontext {

void *mapZeroPages(size_t bytes) {
  void *begin = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) {
    throw std::bad_alloc();
  }
  return begin;
}

void unmapPages(void *begin, size_t bytes) {
  if (begin) {
    munmap(begin, bytes);
  }
}

} // namespace deepcontext
