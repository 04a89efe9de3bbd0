#include "gpu/kernel_names.h"

#include <cstring>
#include <new>

#include "core/interner.h"

namespace deepcontext::gpu {

uint32_t KernelNames::refresh(const char *name) {
  if (!name) {
    return Interner::instance().intern("<kernel without a name>");
  }
  Slot *slot = slots_.findOrInsert(name, {name});
  if (!slot) {
    throw std::bad_alloc();
  }
  if (!slot->content || std::strcmp(slot->content, name) != 0) {
    slot->id = Interner::instance().intern(name);
    slot->content = Interner::instance().text(slot->id).data();
  }
  slot->age = age_;
  return slot->id;
}

} // namespace deepcontext::gpu
