#pragma once
// Copies memory of this process that may not be there any more, without a fault.
#include <cstddef>

namespace deepcontext {

/// Reads through the kernel, which answers with an error where a load would kill the process. Any
/// thread; not async-signal-safe where the kernel refuses process_vm_readv (a file is opened then).
class MemoryReader {
public:
  /// The file, where it is needed, is opened in the calling thread's table of descriptors.
  MemoryReader();
  ~MemoryReader();
  MemoryReader(const MemoryReader &) = delete;
  MemoryReader &operator=(const MemoryReader &) = delete;

  /// Whether anything can be read at all.
  bool isUsable() const { return is_usable_; }
  /// Copy `bytes` bytes; false when not all of them are mapped.
  bool read(const void *from, void *to, size_t bytes) const;

private:
  int pid_;
  int file_ = -1; // /proc/self/mem, where process_vm_readv is refused
  bool is_usable_ = false;
};

} // namespace deepcontext
