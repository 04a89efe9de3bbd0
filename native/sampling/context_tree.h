#pragma once
// Maps sampled places to nodes of the sampler's tree.
#include <cstdint>

#include "core/memory_reader.h"
#include "core/recorder.h"
#include "python/code_table.h"
#include "sampling/sample.h"

namespace deepcontext {

/// The sampler's tree: links to the threads' trees, and sampled frames below them. It belongs to
/// the sampler's thread, because a sampled thread may be changing its tree.
class ContextTree {
public:
  ContextTree();

  /// The thread itself: its tree's root if it has a recorder, otherwise a thread frame (see
  /// `ThreadNames`).
  Node *thread(const Recorder *recorder, uint32_t name, uint32_t serial);
  /// The scope or operator that a thread is in, or `thread`.
  Node *innermost(const SampledContext &context, Node *thread);
  /// The innermost frame of `context`, below `thread` or the scope it is in. `*is_whole` is false
  /// when inner frames are missing, because their code has been destroyed or was never valid; null
  /// when no frame is known.
  Node *place(const SampledContext &context, Node *thread, const MemoryReader &memory,
              bool *is_whole);

  /// A native function that `place` runs.
  Node *callee(Node *place, uint32_t function) {
    return recorder_.tree.child(place, FrameKind::kNative, function, 0);
  }

  void addTo(Node *node, uint16_t metric, uint64_t value) {
    recorder_.tree.metric(node, metric).add(value);
  }

private:
  Node *extend(Node *parent, const SampledFrame &frame, CodeEntry known);

  Recorder &recorder_;
};

} // namespace deepcontext
