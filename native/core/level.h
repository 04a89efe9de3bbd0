#pragma once
// An operator or scope that a thread is inside.
#include <cstdint>

#include "core/thread_tree.h"

namespace deepcontext {

enum class LevelKind : uint8_t {
  kOperator, // newer frames than its anchor belong below it
  kScope,    // opened by a Python frame, which continues inside it and is repeated below it
  kWrapper,  // makes no node: its time belongs to the operator it wraps
  kStep,     // a scope that goes on later: its duration is recorded then
};

/// One activation of a Python function. The address alone does not identify it, because frames
/// reuse addresses; during an activation the caller stays at one instruction.
struct Anchor {
  const void *frame;
  const void *code;
  const void *caller_instruction;
  uint32_t height; // nodes from this frame's down to the scope's, without levels further out
};

/// Frames of one thread that take turns with others: a task of an event loop, by its outermost
/// coroutine, or else a stack, by its outermost frame (each greenlet has a stack of its own).
struct Strand {
  const void *frame;
  const void *code;
  uint64_t thread_state; // its number; 0: a stack that ends with its frame
  bool is_task;
};

struct Level {
  static constexpr int kAnchors = 6;
  static constexpr uint8_t kNoAnchor = UINT8_MAX;

  Node *node;        // where nested contexts hang
  Node *charged;     // receives this level's exclusive time
  Node *folded;      // the marker that replaces everything below, or null
  Node *base;        // what its own path hangs on: the context of the outer level, or the root
  const void *owner; // the framework's object; its address gives the level's place on the C stack
  uint64_t start_ticks; // 0 until the level is complete
  uint64_t nested_ticks;
  uint64_t earlier_ticks; // of its duration, before `start_ticks`
  uint32_t path_length;   // entries of the path cache up to and with this level
  LevelKind kind;
  bool is_inside_operator; // an operator is open further out
  uint8_t joined_anchor;   // of the outer scope: the frame that its own path begins with
  // Interpreter frames that were running when the level was opened, innermost first. An operator
  // keeps the address of the first, which runs longer than the operator. A scope keeps more,
  // because it may outlive the function that opened it.
  Anchor anchors[kAnchors];
  Strand strand; // of a scope

  /// When it was opened.
  uint64_t openedTicks() const { return start_ticks - earlier_ticks; }
  bool isScope() const { return kind == LevelKind::kScope || kind == LevelKind::kStep; }
  /// Whether it is a scope that waits while `other` runs. A task runs inside the scopes around its
  /// event loop.
  bool isOfOtherTurn(const Strand &other) const {
    return isScope() && strand.frame != other.frame && (strand.is_task || !other.is_task);
  }
  /// Where what runs directly inside hangs.
  Node *context() const { return folded ? folded : node; }
  /// Whether its time is an operator's. A scope opened by C++ has the kind of an operator, but is
  /// not one.
  bool isOperator() const {
    return kind == LevelKind::kWrapper ||
           (kind == LevelKind::kOperator && node->kind != FrameKind::kScope);
  }
};

} // namespace deepcontext
