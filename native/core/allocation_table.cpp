#include "core/allocation_table.h"

#include <new>
#include <utility>

namespace deepcontext {

Allocation *AllocationTable::insert(uintptr_t address) {
  size_t slots = slots_ ? mask_ + 1 : 0;
  // At most 3/4 full, so that a search ends soon.
  if (__builtin_expect((size_ + 1) * 4 > slots * 3, 0) && !grow()) {
    return find(address);
  }
  size_t i = home(address);
  while (slots_[i].address != 0 && slots_[i].address != address) {
    i = (i + 1) & mask_;
  }
  if (slots_[i].address == 0) {
    slots_[i].address = address;
    slots_[i].site = nullptr;
    ++size_;
  }
  return &slots_[i];
}

void AllocationTable::erase(Allocation *entry) {
  size_t hole = static_cast<size_t>(entry - slots_.get());
  // Move later entries of the run back, each as far as its own home allows.
  for (size_t i = (hole + 1) & mask_; slots_[i].address != 0; i = (i + 1) & mask_) {
    size_t distance_to_home = (i - home(slots_[i].address)) & mask_;
    size_t distance_to_hole = (i - hole) & mask_;
    if (distance_to_home >= distance_to_hole) {
      slots_[hole] = slots_[i];
      hole = i;
    }
  }
  slots_[hole].address = 0;
  --size_;
}

void AllocationTable::clear() {
  slots_.reset();
  mask_ = 0;
  size_ = 0;
}

bool AllocationTable::grow() {
  size_t old_slots = slots_ ? mask_ + 1 : 0;
  size_t new_slots = old_slots ? old_slots * 2 : kFirstSlots;
  if (new_slots > most_slots_) {
    return false;
  }
  std::unique_ptr<Allocation[]> bigger(new (std::nothrow) Allocation[new_slots]());
  if (!bigger) {
    return false;
  }
  std::swap(slots_, bigger);
  mask_ = new_slots - 1;
  for (size_t old = 0; old < old_slots; ++old) {
    if (bigger[old].address == 0) {
      continue;
    }
    size_t i = home(bigger[old].address);
    while (slots_[i].address != 0) {
      i = (i + 1) & mask_;
    }
    slots_[i] = bigger[old];
  }
  return true;
}

} // namespace deepcontext
