#pragma once
// Copies memory of this process that may be changing or unmapped, without a fault.
#include <cstddef>
#include <sys/types.h>

namespace deepcontext {

/// Asks the kernel to copy. Where a load would kill the process, the kernel returns an error; its
/// check and its copy are one step, so any address is safe.
///
/// Any thread and any signal handler: `read` makes only system calls and keeps errno.
class MemoryReader {
public:
  /// If the kernel refuses process_vm_readv, or a filter would end the process, this opens a file
  /// in the calling thread's table of descriptors. Only threads with this table can then read.
  MemoryReader();
  ~MemoryReader();
  MemoryReader(const MemoryReader &) = delete;
  MemoryReader &operator=(const MemoryReader &) = delete;

  /// Whether anything can be read at all.
  bool isUsable() const { return is_usable_; }
  /// Whether this was made in the calling process, not in its parent.
  bool isOfThisProcess() const;
  /// Copy `bytes` bytes; false, with `to` in any state, when not all of them can be read.
  bool read(const void *from, void *to, size_t bytes) const;

private:
  ssize_t readFile(const void *from, void *to, size_t bytes) const;

  int process_;
  bool may_call_;
  int file_ = -1; // /proc/self/mem, where process_vm_readv is refused
  dev_t device_ = 0;
  ino_t inode_ = 0;
  bool is_usable_ = false;
};

} // namespace deepcontext
