#pragma once
// Maps autograd nodes to the tree nodes that made them, so that a backward finds its forward.
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/lazy_array.h"

namespace deepcontext {

struct Node;

/// Fixed window over (forward thread, sequence number) -> node. One writer (the owner thread),
/// readers on any thread. A reader whose entry was overwritten gets null and requests a window
/// large enough to have held it; the writer enlarges the window at its next store.
///
/// The thread is part of the key, because a recorder outlives its thread, and sequence numbers
/// start again in the next thread.
class SequenceRing {
public:
  static constexpr uint32_t kFirstSlots = 8192;
  static constexpr uint32_t kMaxSlots = 1u << 20;
  static constexpr uint32_t kSlotsAhead = 16;

  SequenceRing();

  void store(uint64_t thread, uint64_t sequence, Node *node) {
    if (__builtin_expect(wanted_slots_.load(std::memory_order_relaxed) != 0, 0)) {
      grow();
    }
    Window *window = window_.load(std::memory_order_relaxed);
    // Numbers rise one by one: fetch the cache line that will be written next.
    __builtin_prefetch(&window->slots[(sequence + kSlotsAhead) & window->mask], 1);
    Slot &slot = window->slots[sequence & window->mask];
    // Release: a reader that sees the new node also sees that the old key is gone. So a reader that
    // finds the same key before and after reading the node has the node of that key.
    slot.key.store(0, std::memory_order_relaxed);
    slot.node.store(node, std::memory_order_release);
    slot.key.store(makeKey(thread, sequence), std::memory_order_release);
  }

  /// Remove the entry of this key, if there is one. Owner only.
  void forget(uint64_t thread, uint64_t sequence) {
    Window *window = window_.load(std::memory_order_relaxed);
    std::atomic<uint64_t> &key = window->slots[sequence & window->mask].key;
    if (key.load(std::memory_order_relaxed) == makeKey(thread, sequence)) {
      key.store(0, std::memory_order_relaxed);
    }
  }

  /// The node stored for this key, or null when it is unknown or was overwritten.
  Node *find(uint64_t thread, uint64_t sequence);

  void clear();

private:
  struct Slot {
    std::atomic<uint64_t> key{0};
    std::atomic<Node *> node{nullptr};
  };
  struct Window {
    explicit Window(uint32_t count) : mask(count - 1), slots(count) {}
    uint64_t mask;
    LazyArray<Slot> slots;
  };

  static uint64_t makeKey(uint64_t thread, uint64_t sequence) {
    return (thread << 40) ^ (sequence + 1); // 2^40 sequence numbers, 2^24 threads
  }
  void askFor(uint64_t slots);
  void grow();

  std::atomic<Window *> window_;
  std::vector<std::unique_ptr<Window>> windows_; // old ones stay: a reader may still use one
  std::atomic<uint64_t> wanted_slots_{0};        // 0: the window is large enough
};

} // namespace deepcontext
