#pragma once
// Kernel names as small ids, looked up by the address at which the vendor keeps them.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace deepcontext::gpu {

/// Cache from a name's address to its interned id. Draining thread only.
///
/// A vendor may free a name with its module and use the address for another, so the content is
/// compared once per `age()`: once a buffer, not once a record, because names are long.
class KernelNames {
public:
  KernelNames() : slots_(1024) {}
  uint32_t lookup(const char *name) {
    Slot &slot = slots_[place(name)];
    return __builtin_expect(slot.name == name && slot.age == age_, 1) ? slot.id : refresh(name);
  }
  /// Addresses may mean something else from here on.
  void age() { ++age_; }

private:
  struct Slot {
    const char *name = nullptr;
    const char *content = nullptr; // the interner's own copy
    uint32_t id = 0;
    uint64_t age = 0;
  };
  size_t place(const char *name) const;
  uint32_t refresh(const char *name);
  void grow();

  std::vector<Slot> slots_;
  size_t used_ = 0;
  uint64_t age_ = 1;
};

} // namespace deepcontext::gpu
