#include "core/sequence_ring.h"

#include <algorithm>

namespace deepcontext {

SequenceRing::SequenceRing() {
  windows_.push_back(std::make_unique<Window>(kFirstSlots));
  window_.store(windows_.back().get(), std::memory_order_release);
}

Node *SequenceRing::find(uint64_t thread, uint64_t sequence) {
  Window *window = window_.load(std::memory_order_acquire);
  Slot &slot = window->slots[sequence & window->mask];
  uint64_t key = makeKey(thread, sequence);
  uint64_t seen = slot.key.load(std::memory_order_acquire);
  if (seen == key) {
    Node *node = slot.node.load(std::memory_order_acquire);
    if (slot.key.load(std::memory_order_relaxed) == key) {
      return node;
    }
  }
  uint64_t same_thread = thread << 40;
  uint64_t newer = (seen ^ same_thread) - 1; // the number in the slot, if the thread is the same
  bool is_overwritten = (seen ^ same_thread) < (1ull << 40) && newer > sequence && seen != 0;
  if (is_overwritten && window->mask + 1 < kMaxSlots) {
    askFor(newer - sequence + 1);
  }
  return nullptr;
}

void SequenceRing::askFor(uint64_t slots) {
  uint64_t wanted = std::min<uint64_t>(slots, kMaxSlots);
  uint64_t asked = wanted_slots_.load(std::memory_order_relaxed);
  while (asked < wanted && !wanted_slots_.compare_exchange_weak(asked, wanted)) {
  }
}

void SequenceRing::grow() {
  uint64_t wanted = wanted_slots_.exchange(0, std::memory_order_relaxed);
  Window *old = window_.load(std::memory_order_relaxed);
  uint64_t slots = old->mask + 1;
  while (slots < wanted) {
    slots *= 2;
  }
  if (slots == old->mask + 1) {
    return; // a reader of an older window asked
  }
  auto bigger = std::make_unique<Window>(static_cast<uint32_t>(slots));
  for (uint64_t i = 0; i <= old->mask; ++i) {
    uint64_t key = old->slots[i].key.load(std::memory_order_relaxed);
    if (key == 0) {
      continue;
    }
    uint64_t sequence = (key & ((1ull << 40) - 1)) - 1;
    Slot &slot = bigger->slots[sequence & bigger->mask];
    slot.node.store(old->slots[i].node.load(std::memory_order_relaxed), std::memory_order_relaxed);
    slot.key.store(key, std::memory_order_relaxed);
  }
  windows_.push_back(std::move(bigger));
  window_.store(windows_.back().get(), std::memory_order_release);
}

void SequenceRing::clear() {
  Window *window = window_.load(std::memory_order_relaxed);
  for (uint64_t i = 0; i <= window->mask; ++i) {
    if (window->slots[i].key.load(std::memory_order_relaxed) != 0) { // do not touch unused pages
      window->slots[i].key.store(0, std::memory_order_relaxed);
    }
  }
}

} // namespace deepcontext
