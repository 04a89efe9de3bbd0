#include "jax/operation_path.h"

#include "jax/source_frames.h"

namespace deepcontext::jax {

namespace {

constexpr char kInsertedMarker[] = "inserted by the compiler";

} // namespace

Node *writeOperationPath(ThreadTree &tree, Node *parent, const Operation &operation) {
  Interner &interner = Interner::instance();
  Node *node = parent;
  if (operation.phase != Phase::kNone) {
    node = tree.child(node, FrameKind::kPhase, interner.intern(phaseName(operation.phase)), 0);
  }
  for (const SourceLine &line : operation.lines) {
    uint64_t frame = SourceFrames::instance().add(line.function, line.file, line.line);
    node = tree.child(node, FrameKind::kPython, frame, 0);
  }
  if (operation.isInserted()) {
    node = tree.child(node, FrameKind::kMarker, interner.intern(kInsertedMarker), 0);
  } else {
    node = tree.child(node, FrameKind::kHlo, interner.intern(operation.primitive), 0);
  }
  // An inserted operation has no node of its primitive, so it needs its name even if both are
  // equal.
  if (operation.isInserted() || operation.name != operation.primitive) {
    node = tree.child(node, FrameKind::kHlo, interner.intern(operation.name), 0);
  }
  return node;
}

} // namespace deepcontext::jax
