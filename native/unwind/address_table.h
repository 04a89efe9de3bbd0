#pragma once
// What is known of return addresses, for the whole process and for each thread.
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/mutex.h"
#include "unwind/loaded_objects.h"
#include "unwind/processor.h"

namespace deepcontext::unwind {

/// What a walk needs to know of a return address.
struct KnownAddress {
  uintptr_t pc = 0;
  FrameRule rule;
  uint32_t function = 0; // see AddressTable::function
  ObjectRole role = ObjectRole::kProgram;
};

/// A function, identified by its start in its file; kept for good.
struct Function {
  uint32_t file = 0; // see LoadedObjects
  ObjectRole role = ObjectRole::kProgram;
  uint64_t offset = 0;    // address in the file, 0 in code of no file
  uint32_t name = 0;      // interned
  uint32_t called_as = 0; // interned, what Python calls it; with `is_callable`
  bool is_named = false;  // whether `name` was looked up
  bool has_symbol = false;
  bool is_plumbing = false; // see AddressTable::addPlumbing
  bool is_callable = false; // see AddressTable::setCallable
  bool is_taken = false;    // see AddressTable::takeNewAddresses

  /// Whether the function only passes a call on, is the interpreter's and nothing that Python code
  /// can call, or is the C library's and has no name.
  bool isHidden() const {
    return is_plumbing || (role == ObjectRole::kHidden && !is_callable) ||
           (role == ObjectRole::kThreadStart && !has_symbol);
  }
};

/// Process-wide. One mutex, taken when a thread meets an address for the first time and when names
/// are looked up, never on a warm path (see ReturnAddressCache).
class AddressTable {
public:
  static AddressTable &instance();

  KnownAddress lookup(uintptr_t pc);
  /// Hide the frames of the object that `address` lies in.
  void hide(uintptr_t address);
  /// Hide functions whose names begin with `beginning`, which only pass a call on. Applies to
  /// functions that have not been named yet.
  void addPlumbing(std::string beginning);
  /// Addresses of the functions that were seen since the last call.
  std::unordered_map<uintptr_t, uint32_t> takeNewAddresses();
  /// Say what Python calls a function, which is its name then.
  void setCallable(uint32_t id, std::string_view name);
  /// Rises when an object was unloaded, so that its addresses may be reused.
  uint64_t epoch() const { return epoch_.load(std::memory_order_acquire); }
  /// Check for objects that were unloaded since the last look-up.
  void refresh();

  /// Function by id, with its name: "name" of its symbol, else "file+0xoffset".
  Function function(uint32_t id);
  ObjectFile file(uint32_t id) const;
  /// Files in which functions were seen, in order of appearance, and how many functions have a
  /// name.
  struct FileUse {
    ObjectFile file;
    uint32_t functions = 0, named = 0;
  };
  std::vector<FileUse> files() const;
  Mutex &forkLock() { return mutex_; }

private:
  KnownAddress describe(uintptr_t pc);
  uint32_t functionAt(uint32_t file, uint64_t offset, ObjectRole role);
  uint32_t nameOf(const Function &function, const std::string &path,
                  const std::string &symbol) const;
  void refreshLocked();
  bool isPlumbing(std::string_view name) const;
  struct Unnamed;
  std::map<uint32_t, Unnamed> unnamed() const;
  void nameFunctions();

  mutable Mutex mutex_;
  std::atomic<uint64_t> epoch_{1};
  LoadedObjects objects_;
  std::unordered_map<uintptr_t, KnownAddress> known_;
  std::deque<Function> functions_;
  std::vector<std::string> plumbing_;
  std::unordered_map<uint64_t, uint32_t> function_ids_; // (file, offset) in one number
};

/// One thread's cache of return addresses. Owner thread only.
class ReturnAddressCache {
public:
  /// Read by each step of a walk: a quarter of a cache line.
  struct Slot {
    uintptr_t pc = 0;
    FrameRule rule; // its tag is the role of the object

    ObjectRole role() const { return static_cast<ObjectRole>(rule.tag); }
  };
  static_assert(sizeof(Slot) == 16);

  ReturnAddressCache() : slots_(kSlots), functions_(kSlots) {}

  const Slot &lookup(uintptr_t pc) {
    Slot &slot = slots_[(pc * 0x9E3779B97F4A7C15u) >> (64 - kSlotBits)];
    if (__builtin_expect(slot.pc != pc, 0)) {
      fill(slot, pc);
    }
    return slot;
  }
  /// The function at an address just looked up.
  uint32_t functionOf(const Slot &slot) const { return functions_[&slot - slots_.data()]; }
  /// Forget everything if an object was unloaded. Returns whether one was.
  bool refresh();

private:
  static constexpr int kSlotBits = 13;
  static constexpr size_t kSlots = size_t{1} << kSlotBits;
  // Walks between two checks for unloaded objects, which take the dynamic linker's lock.
  static constexpr uint32_t kWalksBetween = 64;

  void fill(Slot &slot, uintptr_t pc);

  std::vector<Slot> slots_;
  std::vector<uint32_t> functions_;
  uint64_t epoch_ = 0;
  uint32_t walks_ = 0;
};

} // namespace deepcontext::unwind
