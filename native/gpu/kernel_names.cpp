#include "gpu/kernel_names.h"

#include <cstring>

#include "core/interner.h"

namespace deepcontext::gpu {

size_t KernelNames::place(const char *name) const {
  uint64_t hash = reinterpret_cast<uintptr_t>(name) * 0x9E3779B97F4A7C15u;
  size_t mask = slots_.size() - 1;
  size_t at = (hash >> 32) & mask;
  while (slots_[at].name && slots_[at].name != name) {
    at = (at + 1) & mask;
  }
  return at;
}

uint32_t KernelNames::refresh(const char *name) {
  if (!name) {
    return Interner::instance().intern("<kernel without a name>");
  }
  Slot *slot = &slots_[place(name)];
  if (!slot->name) {
    if (++used_ * 2 > slots_.size()) {
      grow();
      slot = &slots_[place(name)];
    }
    slot->name = name;
  }
  slot->age = age_;
  if (!slot->content || std::strcmp(slot->content, name) != 0) {
    slot->id = Interner::instance().intern(name);
    slot->content = Interner::instance().text(slot->id).data();
  }
  return slot->id;
}

void KernelNames::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot &slot : old) {
    if (slot.name) {
      slots_[place(slot.name)] = slot;
    }
  }
}

} // namespace deepcontext::gpu
