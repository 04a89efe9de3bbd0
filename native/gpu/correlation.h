#pragma once
// Maps the vendor's number of an API call to the call path it was made on.
#include <atomic>
#include <cstdint>

#include "core/lazy_array.h"

namespace deepcontext::gpu {

/// Where and when an API call was made.
struct CallSite {
  uint32_t recorder;         // whose tree
  uint32_t node;             // which node of it
  uint64_t ticks;            // time stamp, its low 48 bits
  uint32_t silent_graph = 0; // number of a graph whose replay need leave no record; 0 for others
};

/// A ring over the id space: slot = id modulo size. Written by launching threads, read by the
/// draining thread; no lock and no allocation. Nothing is erased, because a graph launch is looked
/// up once for each of its kernels. Ids may wrap at 2^32. A call that is `slots` calls old is
/// forgotten; its late records count as unmatched.
class CorrelationTable {
public:
  static constexpr uint32_t kDefaultSlots = 1u << 20;
  static constexpr uint32_t kMaxRecorders = 1u << 16;
  static constexpr uint32_t kTickBits = 48;
  static constexpr uint32_t kNodeBits = 22;
  static constexpr uint32_t kSilentGraphs = 1u << 9; // numbers that fit, with 0

  explicit CorrelationTable(uint32_t slots = kDefaultSlots) : mask_(slots - 1), slots_(slots) {}

  /// False when the recorder's index does not fit (its calls stay unmatched).
  bool set(uint32_t id, uint32_t recorder, uint32_t node, uint64_t ticks,
           uint32_t silent_graph = 0) {
    if (__builtin_expect(recorder >= kMaxRecorders, 0)) {
      return false;
    }
    Slot &slot = slots_[id & mask_];
    // The key is cleared first, so that no reader sees the new value with the old key.
    slot.key.store(0, std::memory_order_relaxed);
    slot.value.store(static_cast<uint64_t>(recorder) << kTickBits | (ticks & kTickMask),
                     std::memory_order_release);
    slot.key.store(keyOf(id) | silent_graph << kNodeBits | node, std::memory_order_release);
    return true;
  }

  bool find(uint32_t id, CallSite *site) const {
    const Slot &slot = slots_[id & mask_];
    uint64_t key = slot.key.load(std::memory_order_acquire);
    uint64_t value = slot.value.load(std::memory_order_acquire);
    if ((key & kIdentity) != keyOf(id) || slot.key.load(std::memory_order_relaxed) != key) {
      return false;
    }
    *site = {static_cast<uint32_t>(value >> kTickBits), static_cast<uint32_t>(key & kNodeMask),
             value & kTickMask, static_cast<uint32_t>(key & ~kIdentity) >> kNodeBits};
    return true;
  }

  void prefetch(uint32_t id) const { __builtin_prefetch(&slots_[id & mask_]); }
  /// Forget all calls. No other thread may be using the table.
  void clear();

  /// Ticks between two stamps of which only the low 48 bits are known.
  static int64_t ticksBetween(uint64_t from, uint64_t to) {
    return static_cast<int64_t>((to - from) << (64 - kTickBits)) >> (64 - kTickBits);
  }

private:
  static constexpr uint64_t kTickMask = (1ull << kTickBits) - 1;
  static constexpr uint64_t kOccupied = 1u << 31; // an id may be 0, and a node, too
  static constexpr uint64_t kNodeMask = (1u << kNodeBits) - 1;
  static constexpr uint64_t kIdentity = ~(kOccupied - 1);
  static_assert(kSilentGraphs << kNodeBits == kOccupied);
  static uint64_t keyOf(uint32_t id) { return static_cast<uint64_t>(id) << 32 | kOccupied; }

  struct Slot {
    std::atomic<uint64_t> key;
    std::atomic<uint64_t> value;
  };
  uint32_t mask_;
  LazyArray<Slot> slots_;
};

} // namespace deepcontext::gpu
