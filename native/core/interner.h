#pragma once
// Strings as dense ids: each distinct string is kept once, for the life of the process.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/lazy_array.h"
#include "core/mutex.h"

namespace deepcontext {

/// `text` with each run of digits replaced by "N".
std::string withoutNumbers(std::string_view text);

/// Process-wide string table. Any thread; one mutex, never on a warm path (see NameCache).
class Interner {
public:
  static constexpr size_t kMostBytes = 64 << 20;
  static constexpr char kOtherNames[] = "(other names)";

  explicit Interner(size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}
  static Interner &instance();

  uint32_t intern(std::string_view text);
  /// As `intern`, for names made by the program under test. After kMostVariants texts that
  /// differ only in their numbers ("step 12345", new shapes), further such texts become one text
  /// with N for each number. When the table is full, new texts become kOtherNames.
  uint32_t internBounded(std::string_view text);
  /// The string of an id; the view stays valid for the life of the process.
  std::string_view text(uint32_t id) const;
  /// How often a text became kOtherNames since `clearRefused`.
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  void clearRefused() { refused_.store(0, std::memory_order_relaxed); }
  Mutex &forkLock() { return mutex_; }

  static constexpr uint32_t kMostVariants = 64;

private:
  static constexpr size_t kTextBytes = 128; // of memory, besides the characters

  uint32_t internLocked(std::string_view text);
  bool isOneOfMany(const std::string &common);

  const size_t most_bytes_;
  size_t bytes_ = 0;
  std::atomic<uint64_t> refused_{0};

  mutable Mutex mutex_;
  std::unordered_map<std::string, uint32_t> variants_; // text without its numbers -> how many
  std::deque<std::string> strings_;                    // does not move its elements
  std::unordered_map<std::string_view, uint32_t> ids_;
};

/// Per-thread cache from a C string's address to its id. Owner thread only.
///
/// A framework may build names in a temporary buffer, so that one address holds different names
/// over time (PyTorch does, for backward nodes and user scopes): a hit by address is confirmed by
/// content. If another name was last seen at the address, the name is looked up by content. Only a
/// name that is new to this thread takes the interner's lock.
class NameCache {
public:
  uint32_t lookup(const char *name) {
    uintptr_t address = reinterpret_cast<uintptr_t>(name);
    Slot &slot = slots_[((address >> 4) ^ (address >> 14)) % kSlots];
    if (__builtin_expect(slot.address == name && isSame(slot, name), 1)) {
      return slot.id;
    }
    return fill(slot, name);
  }

private:
  static constexpr size_t kSlots = 1024;
  static constexpr size_t kHeadBytes = 16;
  struct Slot {
    const char *address = nullptr; // where the name was last seen; null in `by_content_`
    const char *content = nullptr; // the interner's own copy; null where names were joined
    uint64_t hash = 0;             // of the name, to recognise it without a copy
    uint64_t head[2] = {};         // its first bytes, if it is shorter than kHeadBytes
    uint64_t mask[2] = {};         // which of them count, the terminating zero included
    uint32_t id = 0;
    bool is_used = false;
  };

  /// Whether the name at the address still is the slot's. Most names are short: their bytes are
  /// compared in two loads, which may read past the name's end but never past its page.
  __attribute__((no_sanitize("address"))) static bool isSame(const Slot &slot, const char *name) {
    constexpr uintptr_t kPageBytes = 4096;
    uintptr_t in_page = reinterpret_cast<uintptr_t>(name) % kPageBytes;
    if (slot.mask[0] && in_page <= kPageBytes - kHeadBytes) {
      uint64_t found[2];
      __builtin_memcpy(found, name, kHeadBytes);
      return ((found[0] ^ slot.head[0]) & slot.mask[0]) == 0 &&
             ((found[1] ^ slot.head[1]) & slot.mask[1]) == 0;
    }
    return slot.content ? std::strcmp(slot.content, name) == 0 : hashOf(name) == slot.hash;
  }
  uint32_t fill(Slot &slot, const char *name);
  static uint64_t hashOf(const char *name);
  static Slot slotOf(const char *name, uint64_t hash);
  LazyArray<Slot> slots_{kSlots};
  LazyArray<Slot> by_content_{kSlots}; // by a hash of the content
};

} // namespace deepcontext
