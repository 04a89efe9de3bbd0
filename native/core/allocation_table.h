#pragma once
// From the address of a living allocation to what is known about it.
#include <cstddef>
#include <cstdint>
#include <memory>

namespace deepcontext {

struct AllocationSite;

/// One living allocation.
struct Allocation {
  uintptr_t address; // 0: an empty slot
  AllocationSite *site;
  uint64_t size_bytes;
  uint32_t epoch;     // of its pool before it was made
  uint32_t turn : 24; // of the ledger when it was made
  uint32_t role : 8;  // TensorRole told from outside, or kUnknown
};
static_assert(sizeof(Allocation) == 32);

/// Open addressing with linear probing and no tombstones. Grows by doubling up to `kMaxSlots`, then
/// refuses: 32 MiB at most. Not thread-safe.
class AllocationTable {
public:
  static constexpr size_t kFirstSlots = 4096;
  static constexpr size_t kMaxSlots = size_t{1} << 20;

  explicit AllocationTable(size_t most_slots = kMaxSlots) : most_slots_(most_slots) {}

  /// The slot for `address`: its present entry, or an empty one with the address filled in. Null
  /// when the table is full.
  Allocation *insert(uintptr_t address);
  Allocation *find(uintptr_t address) {
    if (!slots_) {
      return nullptr;
    }
    for (size_t i = home(address);; i = (i + 1) & mask_) {
      if (slots_[i].address == address) {
        return &slots_[i];
      }
      if (slots_[i].address == 0) {
        return nullptr;
      }
    }
  }
  void erase(Allocation *entry);
  /// Forget everything and give the memory back.
  void clear();
  size_t size() const { return size_; }
  template <typename Visit> void forEach(Visit visit) const {
    for (size_t i = 0; slots_ && i <= mask_; ++i) {
      if (slots_[i].address != 0) {
        visit(slots_[i]);
      }
    }
  }

private:
  size_t home(uintptr_t address) const {
    // Allocators align to 64 bytes: the low bits say nothing.
    uint64_t hash = (address >> 6) * 0x9E3779B97F4A7C15u;
    return (hash >> 40) & mask_;
  }
  bool grow();

  size_t most_slots_;
  size_t mask_ = 0;
  size_t size_ = 0;
  std::unique_ptr<Allocation[]> slots_;
};

} // namespace deepcontext
