#pragma once
// A thread's cache keyed by address, and when addresses changed their meaning.
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/lazy_array.h"

namespace deepcontext {

inline size_t hashAddress(const void *address) {
  auto value = reinterpret_cast<uintptr_t>(address);
  return (value >> 4) ^ (value >> 15);
}

/// When addresses last changed their meaning, because an object died or was renamed. Addresses
/// share buckets, so an unchanged address may seem changed, but a changed one never seems
/// unchanged.
///
/// One writer at a time, readers on any thread. The source of a reader's object (the GIL, an
/// allocator's lock) must order the change before the read.
class AddressEpochs {
public:
  /// Rises with each change.
  uint64_t now() const { return now_.load(std::memory_order_acquire); }
  /// Whether facts about `address` from epoch `since` may be out of date.
  bool hasChanged(const void *address, uint64_t since) const {
    return changed_[hashAddress(address) % kBuckets].load(std::memory_order_acquire) > since;
  }
  void change(const void *address) {
    uint64_t next = now_.load(std::memory_order_relaxed) + 1;
    changed_[hashAddress(address) % kBuckets].store(next, std::memory_order_release);
    now_.store(next, std::memory_order_release); // last: a reader that sees it also sees the bucket
  }
  void changeAll() {
    uint64_t next = now_.load(std::memory_order_relaxed) + 1;
    for (std::atomic<uint64_t> &bucket : changed_) {
      bucket.store(next, std::memory_order_release);
    }
    now_.store(next, std::memory_order_release);
  }

private:
  static constexpr size_t kBuckets = 4096;
  std::atomic<uint64_t> now_{1};
  std::atomic<uint64_t> changed_[kBuckets] = {};
};

/// Map from an address to a value. One thread; an entry is valid until its address changes.
template <typename Value> class AddressCache {
public:
  Value *find(const void *address, const AddressEpochs &epochs) {
    Slot &slot = slots_[hashAddress(address) % kSlots];
    return slot.address == address && !epochs.hasChanged(address, slot.epoch) ? &slot.value
                                                                              : nullptr;
  }
  /// `epoch` was read before the value was looked up.
  Value *store(const void *address, Value value, uint64_t epoch) {
    Slot &slot = slots_[hashAddress(address) % kSlots];
    slot = {address, epoch, value};
    return &slot.value;
  }

private:
  static constexpr size_t kSlots = 2048;
  struct Slot {
    const void *address = nullptr;
    uint64_t epoch = 0;
    Value value{};
  };
  LazyArray<Slot> slots_{kSlots};
};

} // namespace deepcontext
