#pragma once
// Kernel names as small ids, looked up by the address of the vendor's text.
#include <cstdint>

#include "core/probe_table.h"

namespace deepcontext::gpu {

/// Cache from a name's address to its interned id. Draining thread only.
///
/// A vendor may free a name with its module and reuse the address, so the content is compared again
/// after each `age()`: once a buffer, not once a record, because names are long.
class KernelNames {
public:
  uint32_t lookup(const char *name) {
    const Slot *slot = slots_.find(name);
    return __builtin_expect(slot && slot->age == age_, 1) ? slot->id : refresh(name);
  }
  /// From now on addresses may hold other names.
  void age() { ++age_; }

private:
  struct Slot {
    const char *name = nullptr;
    const char *content = nullptr; // the interner's own copy
    uint32_t id = 0;
    uint64_t age = 0;

    bool isFree() const { return !name; }
    bool isOf(const char *other) const { return name == other; }
    uint64_t hash() const { return hashOf(name); }
    static uint64_t hashOf(const char *name) {
      return (reinterpret_cast<uintptr_t>(name) * 0x9E3779B97F4A7C15u) >> 32;
    }
  };
  uint32_t refresh(const char *name);

  ProbeTable<Slot> slots_;
  uint64_t age_ = 1;
};

} // namespace deepcontext::gpu
