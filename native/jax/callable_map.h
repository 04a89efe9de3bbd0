#pragma once
// Maps jitted objects to their functions.
#include <Python.h>

#include <cstdint>
#include <new>

#include "core/probe_table.h"

namespace deepcontext::jax {

/// The function of each jitted object. Read and written with the GIL held. The entry of a dead
/// object stays; a new jitted object at its address passes through `hook`, which replaces the
/// entry.
class CallableMap {
public:
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t find(PyObject *callable) const {
    const Slot *slot = slots_.find(callable);
    return slot ? slot->function : kNone;
  }
  void store(PyObject *callable, uint32_t function) {
    Slot *slot = slots_.findOrInsert(callable, {callable});
    if (!slot) {
      throw std::bad_alloc();
    }
    slot->function = function;
  }

private:
  struct Slot {
    PyObject *callable = nullptr;
    uint32_t function = 0;

    bool isFree() const { return !callable; }
    bool isOf(PyObject *other) const { return callable == other; }
    uint64_t hash() const { return hashOf(callable); }
    static uint64_t hashOf(PyObject *callable) {
      auto value = reinterpret_cast<uintptr_t>(callable) >> 4;
      return value ^ (value >> 11);
    }
  };

  ProbeTable<Slot> slots_;
};

} // namespace deepcontext::jax
