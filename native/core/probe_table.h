#pragma once
// The hash table of every layer: open addressing with linear probing and no tombstones.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace deepcontext {

/// A table of `Slot`s, at most `most_percent` full. A slot has `isFree()`, true of a
/// default-constructed one, `isOf(key)`, `hash()` and `hashOf(key)`; the low bits of hashes differ
/// between keys. Not thread-safe.
///
/// Takes memory when the first slot is inserted and doubles it as it fills, which moves the slots.
template <typename Slot, size_t most_percent = 50> class ProbeTable {
public:
  explicit ProbeTable(size_t first_slots = 1024, size_t most_slots = SIZE_MAX)
      : first_slots_(first_slots), most_slots_(most_slots) {}
  ProbeTable(const ProbeTable &) = delete;
  ProbeTable &operator=(const ProbeTable &) = delete;

  size_t size() const { return count_; }

  /// The slot of this key, or null.
  template <typename Key> Slot *find(const Key &key) const {
    Slot &slot = slots_[positionOf(key)];
    return slot.isFree() ? nullptr : &slot;
  }
  template <typename Key> void prefetch(const Key &key) const {
    __builtin_prefetch(&slots_[Slot::hashOf(key) & mask_], 1);
  }

  /// Make room for this many more slots, so that inserting them moves no slot. False when the table
  /// has reached its largest size, or there is no memory.
  bool makeRoom(size_t more = 1) {
    return __builtin_expect(count_ + more <= limit_, 1) || grow(count_ + more);
  }
  /// Insert a slot whose key is not in the table, where there is room.
  Slot &insert(const Slot &value) {
    size_t position = value.hash() & mask_;
    while (!slots_[position].isFree()) {
      position = (position + 1) & mask_;
    }
    ++count_;
    return slots_[position] = value;
  }
  /// The slot of this key; where there is none, `value` inserted. Null when there is no room.
  template <typename Key> Slot *findOrInsert(const Key &key, const Slot &value) {
    if (!makeRoom()) {
      return find(key);
    }
    Slot &slot = slots_[positionOf(key)];
    if (slot.isFree()) {
      slot = value;
      ++count_;
    }
    return &slot;
  }

  void erase(Slot *slot) {
    auto hole = static_cast<size_t>(slot - slots_);
    // Move later slots of the run back, each as far as its own home allows.
    for (size_t next = (hole + 1) & mask_; !slots_[next].isFree(); next = (next + 1) & mask_) {
      size_t distance_to_home = (next - slots_[next].hash()) & mask_;
      size_t distance_to_hole = (next - hole) & mask_;
      if (distance_to_home >= distance_to_hole) {
        slots_[hole] = slots_[next];
        hole = next;
      }
    }
    slots_[hole] = Slot();
    --count_;
  }
  /// Forget everything and give the memory back.
  void clear() {
    slots_ = &nothing_;
    owned_.reset();
    mask_ = count_ = limit_ = 0;
  }
  /// Exchange the slots, not the limits.
  void swap(ProbeTable &other) {
    std::swap(slots_, other.slots_);
    std::swap(owned_, other.owned_);
    std::swap(mask_, other.mask_);
    std::swap(count_, other.count_);
    std::swap(limit_, other.limit_);
  }
  /// Visit the slots at `most` positions from `position` on; return the position after them, and 0
  /// after the last.
  template <typename Visit> size_t visitSome(size_t position, size_t most, Visit visit) const {
    size_t end = position + most <= mask_ ? position + most : mask_ + 1;
    for (; position < end; ++position) {
      if (!slots_[position].isFree()) {
        visit(slots_[position]);
      }
    }
    return position > mask_ ? 0 : position;
  }
  template <typename Visit> void forEach(Visit visit) const {
    for (size_t i = 0; i <= mask_; ++i) {
      if (!slots_[i].isFree()) {
        visit(slots_[i]);
      }
    }
  }

private:
  /// Of the slot of this key, or of the free one where it belongs.
  template <typename Key> size_t positionOf(const Key &key) const {
    size_t position = Slot::hashOf(key) & mask_;
    while (!slots_[position].isFree() && !slots_[position].isOf(key)) {
      position = (position + 1) & mask_;
    }
    return position;
  }

  __attribute__((noinline)) bool grow(size_t wanted) {
    size_t slots = owned_ ? (mask_ + 1) * 2 : first_slots_;
    while (slots * most_percent / 100 < wanted) {
      slots *= 2;
    }
    if (slots > most_slots_) {
      return false;
    }
    std::unique_ptr<Slot[]> bigger(new (std::nothrow) Slot[slots]());
    if (!bigger) {
      return false;
    }
    owned_.swap(bigger); // `bigger` holds the old slots now, if there are any
    size_t old_slots = bigger ? mask_ + 1 : 0;
    slots_ = owned_.get();
    mask_ = slots - 1;
    limit_ = slots * most_percent / 100;
    count_ = 0;
    for (size_t i = 0; i < old_slots; ++i) {
      if (!bigger[i].isFree()) {
        insert(bigger[i]);
      }
    }
    return true;
  }

  static inline Slot nothing_{}; // of a table without memory: the free slot that ends each search
  Slot *slots_ = &nothing_;
  std::unique_ptr<Slot[]> owned_;
  size_t mask_ = 0;
  size_t count_ = 0;
  size_t limit_ = 0; // slots in use before the table grows
  size_t first_slots_;
  size_t most_slots_;
};

} // namespace deepcontext
