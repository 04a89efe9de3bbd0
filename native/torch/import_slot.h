#pragma once
// The pointer through which one loaded library calls a function of another.
#include <string>

namespace deepcontext::torch {

/// One entry of a library's procedure linkage table. Found by name, read and written atomically:
/// the library may be calling through it on other threads.
class ImportSlot {
public:
  /// Find the slot of `symbol` in a library that is loaded already, by its file name. False with
  /// the reason when the library is not loaded or does not call the function through a slot.
  bool find(const char *library, const char *symbol, std::string *reason);
  /// The function that calls through the slot reach; null before the first call, which resolves it.
  void *target() const;
  /// Does nothing where the kernel does not allow the page to be written.
  void set(void *function);
  explicit operator bool() const { return place_ != nullptr; }

private:
  void **place_ = nullptr;
  bool is_read_only_ = false;   // the linker closed the page after relocation
  const void *begin_ = nullptr; // the library itself: an unresolved slot points into it
  const void *end_ = nullptr;
};

} // namespace deepcontext::torch
