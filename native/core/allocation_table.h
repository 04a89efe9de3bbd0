#pragma once
// From the address of a living allocation to what is known about it.
#include <cstddef>
#include <cstdint>

#include "core/probe_table.h"

namespace deepcontext {

struct AllocationSite;

/// One living allocation.
struct Allocation {
  uintptr_t address; // 0: an empty slot
  AllocationSite *site;
  uint64_t size_bytes;
  uint32_t epoch;       // of its pool before it was made
  uint32_t turn : 24;   // of the ledger when it was made
  uint32_t role : 7;    // TensorRole set by the collector, or kUnknown
  uint32_t is_seen : 1; // equal to the ledger's mark: the last reading has it

  bool isFree() const { return address == 0; }
  bool isOf(uintptr_t other) const { return address == other; }
  uint64_t hash() const { return hashOf(address); }
  static uint64_t hashOf(uintptr_t address) {
    // Allocators align to 64 bytes, so the low bits are equal.
    return ((address >> 6) * 0x9E3779B97F4A7C15u) >> 40;
  }
};
static_assert(sizeof(Allocation) == 32);

/// Grows up to `kMaxSlots`, then refuses: 32 MiB at most. Not thread-safe.
class AllocationTable {
public:
  static constexpr size_t kFirstSlots = 4096;
  static constexpr size_t kMaxSlots = size_t{1} << 20;
  static constexpr size_t kMostPercent = 75;

  explicit AllocationTable(size_t most_slots = kMaxSlots) : slots_(kFirstSlots, most_slots) {}

  /// The entry of `address`: the present one, or an empty one with the address filled in. Null when
  /// the table is full.
  Allocation *insert(uintptr_t address) {
    Allocation fresh{};
    fresh.address = address;
    return slots_.findOrInsert(address, fresh);
  }
  Allocation *find(uintptr_t address) const { return slots_.find(address); }
  void erase(Allocation *entry) { slots_.erase(entry); }
  void clear() { slots_.clear(); }
  size_t size() const { return slots_.size(); }
  void swap(AllocationTable &other) { slots_.swap(other.slots_); }
  /// See ProbeTable.
  template <typename Visit> size_t visitSome(size_t position, size_t most, Visit visit) const {
    return slots_.visitSome(position, most, visit);
  }

private:
  ProbeTable<Allocation, kMostPercent> slots_;
};

} // namespace deepcontext
