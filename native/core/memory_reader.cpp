// Async-signal-safe, but for the constructor.
#include "core/memory_reader.h"

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/call_filters.h"
#include "core/system_call.h"
#include "core/thread.h"

namespace deepcontext {

namespace {

// Leaves low numbers to the program, which may expect them from open() after close().
constexpr int kLowestDescriptor = 500;

int openMemory() {
  int opened = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  int high = opened < 0 ? -1 : fcntl(opened, F_DUPFD_CLOEXEC, kLowestDescriptor);
  if (high < 0) { // where few descriptors are allowed
    return opened;
  }
  close(opened);
  return high;
}

/// By system calls, not by the C library: its pread() is a cancellation point.
ssize_t copyFromOwnProcess(const void *from, void *to, size_t bytes) {
  iovec local{to, bytes};
  iovec remote{const_cast<void *>(from), bytes};
  // By the calling thread's number: the process's number has no memory once the first thread has
  // ended.
  return systemCall(SYS_process_vm_readv, kernelThread(), &local, 1, &remote, 1, 0);
}

} // namespace

MemoryReader::MemoryReader() : process_(getpid()), may_call_(!isFatal(OwnCall::kReadMemory)) {
  const int probe = 1;
  int copy = 0;
  is_usable_ = read(&probe, &copy, sizeof probe);
  if (is_usable_) {
    return;
  }
  file_ = openMemory();
  struct stat status;
  if (file_ >= 0 && fstat(file_, &status) == 0) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
    is_usable_ = read(&probe, &copy, sizeof probe);
  }
}

MemoryReader::~MemoryReader() {
  if (file_ >= 0) {
    close(file_);
  }
}

bool MemoryReader::isOfThisProcess() const {
  return process_ == getpid();
}

bool MemoryReader::read(const void *from, void *to, size_t bytes) const {
  int saved = errno;
  ssize_t copied = file_ >= 0  ? readFile(from, to, bytes)
                   : may_call_ ? copyFromOwnProcess(from, to, bytes)
                               : -1;
  errno = saved;
  return copied == static_cast<ssize_t>(bytes);
}

ssize_t MemoryReader::readFile(const void *from, void *to, size_t bytes) const {
  struct stat status;
  // A program that closes all descriptors may have opened another file under this number.
  if (fstat(file_, &status) != 0 || status.st_dev != device_ || status.st_ino != inode_) {
    return -1;
  }
  auto offset = static_cast<off_t>(reinterpret_cast<uintptr_t>(from));
  return systemCall(SYS_pread64, file_, to, bytes, offset);
}

} // namespace deepcontext
