#pragma once
// From a jitted object to its function.
#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace deepcontext::jax {

/// Which function an object is. Read and written with the GIL held. An object that dies leaves its
/// entry behind; whatever jitted function gets its address comes through `hook` and replaces it.
class CallableMap {
public:
  uint32_t find(PyObject *callable) const {
    size_t slot = hash(callable) & mask_;
    while (slots_[slot].callable) {
      if (slots_[slot].callable == callable) {
        return slots_[slot].function;
      }
      slot = (slot + 1) & mask_;
    }
    return kNone;
  }
  void store(PyObject *callable, uint32_t function) {
    if (count_ * 2 >= slots_.size()) {
      grow();
    }
    size_t slot = hash(callable) & mask_;
    while (slots_[slot].callable && slots_[slot].callable != callable) {
      slot = (slot + 1) & mask_;
    }
    count_ += slots_[slot].callable == nullptr;
    slots_[slot] = {callable, function};
  }
  static constexpr uint32_t kNone = UINT32_MAX;

private:
  struct Slot {
    PyObject *callable = nullptr;
    uint32_t function = 0;
  };
  static size_t hash(PyObject *callable) {
    auto value = reinterpret_cast<uintptr_t>(callable) >> 4;
    return value ^ (value >> 11);
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    mask_ = slots_.size() - 1;
    count_ = 0;
    for (const Slot &slot : old) {
      if (slot.callable) {
        store(slot.callable, slot.function);
      }
    }
  }
  std::vector<Slot> slots_ = std::vector<Slot>(1024);
  size_t mask_ = 1023;
  size_t count_ = 0;
};

} // namespace deepcontext::jax
