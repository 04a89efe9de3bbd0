#pragma once
// What a thread knows of addresses, and which of them have got another meaning since.
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/lazy_array.h"

namespace deepcontext {

inline size_t hashAddress(const void *address) {
  auto value = reinterpret_cast<uintptr_t>(address);
  return (value >> 4) ^ (value >> 15);
}

/// When addresses lost their meaning: an object died, or is called otherwise now. Addresses share
/// buckets, so that one may seem to have changed that has not; never the other way round.
///
/// One writer at a time, readers on any thread. A reader must have got to know of the object that
/// is now at the address in a way that orders the change before (the GIL, a lock of the allocator).
class AddressEpochs {
public:
  /// Moves with each change.
  uint64_t now() const { return now_.load(std::memory_order_acquire); }
  /// Whether what was known of `address` at epoch `since` may be wrong by now.
  bool hasChanged(const void *address, uint64_t since) const {
    return changed_[hashAddress(address) % kBuckets].load(std::memory_order_acquire) > since;
  }
  void change(const void *address) {
    uint64_t next = now_.load(std::memory_order_relaxed) + 1;
    changed_[hashAddress(address) % kBuckets].store(next, std::memory_order_release);
    now_.store(next, std::memory_order_release); // last: who sees it also sees what has changed
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

/// Map from an address to what is known of it. One thread; an entry holds until its address
/// changes.
template <typename Value> class AddressCache {
public:
  Value *find(const void *address, const AddressEpochs &epochs) {
    Slot &slot = slots_[hashAddress(address) % kSlots];
    return slot.address == address && !epochs.hasChanged(address, slot.epoch) ? &slot.value
                                                                              : nullptr;
  }
  /// `epoch` is one from before the value was found out.
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
