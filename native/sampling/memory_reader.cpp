#include "sampling/memory_reader.h"

#include <cstdint>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

namespace deepcontext {

MemoryReader::MemoryReader() : pid_(getpid()) {
  const int probe = 1;
  int copy = 0;
  is_usable_ = read(&probe, &copy, sizeof probe);
  if (!is_usable_) {
    file_ = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    is_usable_ = file_ >= 0 && read(&probe, &copy, sizeof probe);
  }
}

MemoryReader::~MemoryReader() {
  if (file_ >= 0) {
    close(file_);
  }
}

bool MemoryReader::read(const void *from, void *to, size_t bytes) const {
  if (file_ >= 0) {
    auto offset = static_cast<off_t>(reinterpret_cast<uintptr_t>(from));
    return pread(file_, to, bytes, offset) == static_cast<ssize_t>(bytes);
  }
  iovec local{to, bytes};
  iovec remote{const_cast<void *>(from), bytes};
  return process_vm_readv(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

} // namespace deepcontext
