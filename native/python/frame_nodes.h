#pragma once
// The tree node of a walked frame, through a thread's caches of code objects and modules.
#include <Python.h>

#include <cstdint>

#include "core/recorder.h"
#include "python/code_table.h"
#include "python/interpreter_frame.h"
#include "python/module_table.h"

namespace deepcontext {

/// A module's id, and its type, because a module may die and its address be reused before the table
/// has a weak reference to it.
struct SeenModule {
  uint32_t id = 0;
  const void *type = nullptr;
};

/// A thread's caches of addresses.
struct AddressCaches final : RecorderExtension {
  static constexpr ExtensionPlace kPlace = ExtensionPlace::kFrameWalk;
  AddressCache<CodeEntry> codes;
  AddressCache<SeenModule> modules;
  uint64_t code_epoch = 0; // at which the last path was valid
  uint64_t module_epoch = 0;
};

/// Invalidate the frames of the last path whose addresses may have changed their meaning since this
/// thread last checked: in the whole path, because a walk compares only the frames below the
/// innermost level.
inline void refresh(Recorder &recorder, AddressCaches &caches) {
  const AddressEpochs &codes = CodeTable::epochs();
  const AddressEpochs &modules = ModuleTable::epochs();
  uint64_t code_epoch = codes.now();
  uint64_t module_epoch = modules.now();
  if (__builtin_expect(caches.code_epoch == code_epoch && caches.module_epoch == module_epoch, 1)) {
    return;
  }
  for (uint32_t i = 0; i < recorder.path_length; ++i) {
    PathEntry &entry = recorder.path[i];
    if (codes.hasChanged(entry.code, caches.code_epoch) ||
        (entry.instance && modules.hasChanged(entry.instance, caches.module_epoch))) {
      entry.instruction = nullptr;
    }
  }
  caches.code_epoch = code_epoch;
  caches.module_epoch = module_epoch;
}

inline CodeEntry codeEntry(Recorder &recorder, AddressCaches &caches, const PyCodeObject *code) {
  const AddressEpochs &epochs = CodeTable::epochs();
  if (CodeEntry *known = caches.codes.find(code, epochs)) {
    return *known;
  }
  RecorderCounters::bump(recorder.counters.address_lookups);
  uint64_t epoch = epochs.now();
  return *caches.codes.store(code, CodeTable::instance().entry(code), epoch);
}

inline uint32_t moduleEntry(Recorder &recorder, AddressCaches &caches, const void *instance) {
  const void *type = Py_TYPE(static_cast<PyObject *>(const_cast<void *>(instance)));
  const AddressEpochs &epochs = ModuleTable::epochs();
  SeenModule *known = caches.modules.find(instance, epochs);
  if (!known || known->type != type) {
    RecorderCounters::bump(recorder.counters.address_lookups);
    uint64_t epoch = epochs.now();
    known = caches.modules.store(instance, {ModuleTable::instance().entry(instance), type}, epoch);
  }
  return known->id;
}

/// The tree node of one more frame below `parent`.
inline Node *extend(Recorder &recorder, AddressCaches &caches, Node *parent,
                    const WalkedFrame &seen, PathEntry &entry) {
  if (!seen.code) {
    return recorder.tree.child(parent, FrameKind::kNative, seen.function, 0);
  }
  auto *code = static_cast<const PyCodeObject *>(seen.code);
  CodeEntry known = codeEntry(recorder, caches, code);
  switch (known.role) {
  case CodeRole::kHidden:
  case CodeRole::kScopePlumbing:
    return parent;
  case CodeRole::kFolded:
    entry.is_folded = true;
    parent = recorder.tree.child(parent, FrameKind::kMarker, known.marker, 0);
    if (parent->kind == FrameKind::kMarker) { // not when the tree is full
      parent->setFlag(kFlagFolding);
    }
    return parent;
  case CodeRole::kModuleCall:
    if (entry.instance) {
      return recorder.tree.child(parent, FrameKind::kModule,
                                 moduleEntry(recorder, caches, entry.instance), 0);
    }
    return parent;
  case CodeRole::kPlain:
    break;
  }
  uint32_t offset = known.hasPlaces() ? instructionOffset(code, entry.instruction) : 0;
  return recorder.tree.child(parent, FrameKind::kPython, known.id, offset);
}

} // namespace deepcontext
