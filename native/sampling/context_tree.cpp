#include "sampling/context_tree.h"

#include <Python.h>

#include "python/code_table.h"
#include "python/interpreter_frame.h"
#include "python/module_table.h"

namespace deepcontext {

ContextTree::ContextTree() : recorder_(RecorderRegistry::instance().makeDetached("cpu sampler")) {}

Node *ContextTree::thread(const Recorder *recorder, uint32_t name, uint32_t serial) {
  ThreadTree &tree = recorder_.tree;
  return recorder ? tree.child(tree.root(), FrameKind::kLink, recorder->index(), 0)
                  : tree.child(tree.root(), FrameKind::kThread, name, serial);
}

Node *ContextTree::innermost(const SampledContext &context, Node *thread) {
  if (!context.recorder || !context.base) {
    return thread;
  }
  return recorder_.tree.child(recorder_.tree.root(), FrameKind::kLink, context.recorder->index(),
                              context.base->id);
}

Node *ContextTree::place(const SampledContext &context, Node *thread, const MemoryReader &memory,
                         bool *is_whole) {
  Node *node = innermost(context, thread);
  *is_whole = !context.is_garbled;
  uint32_t kept = context.keptFrames();
  for (uint32_t left = kept; left > 0; --left) {
    const SampledFrame &frame = context.frame(context.frame_count - kept + left - 1);
    std::optional<CodeEntry> known =
        CodeTable::instance().entrySince(frame.code, context.code_deaths, memory);
    if (!known) {
      *is_whole = false;
      return left == kept ? nullptr : node;
    }
    node = extend(node, frame, *known);
    if (known->role == CodeRole::kFolded) {
      break;
    }
  }
  return node;
}

Node *ContextTree::extend(Node *parent, const SampledFrame &frame, CodeEntry known) {
  switch (known.role) {
  case CodeRole::kHidden:
  case CodeRole::kScopePlumbing:
    return parent;
  case CodeRole::kFolded:
    return recorder_.tree.child(parent, FrameKind::kMarker, known.marker, 0);
  case CodeRole::kModuleCall: {
    std::optional<uint32_t> module = ModuleTable::instance().find(frame.instance);
    return module ? recorder_.tree.child(parent, FrameKind::kModule, *module, 0) : parent;
  }
  case CodeRole::kPlain:
    break;
  }
  auto *code = static_cast<const PyCodeObject *>(frame.code);
  uint32_t offset = known.hasPlaces() ? instructionOffset(code, frame.instruction) : 0;
  return recorder_.tree.child(parent, FrameKind::kPython, known.id, offset);
}

} // namespace deepcontext
