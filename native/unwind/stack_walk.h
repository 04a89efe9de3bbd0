#pragma once
// Walks the native frames of the calling thread, innermost first.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "unwind/address_table.h"

namespace deepcontext::unwind {

/// Whether native stacks can be walked on this processor.
constexpr bool isSupported() {
#if defined(__x86_64__)
  return true;
#else
  return false;
#endif
}

/// What a walk starts from.
struct Registers {
  uintptr_t pc = 0, sp = 0, rbp = 0;

  /// Those of the calling function, as they are when this returns.
  static Registers ofCaller();
};

/// A native frame: its place on the stack is [sp, cfa).
struct NativeFrame {
  uintptr_t pc = 0, sp = 0, cfa = 0;
  uint32_t function = 0;
  ObjectRole role = ObjectRole::kProgram;
};

enum class WalkEnd : uint8_t {
  kNotYet,
  kOutermost, // the thread's first frame
  kNoRule,    // code without unwind information, of a compiler at run time for example
  kBadStack,  // the next frame would not lie further out on this thread's stack
};

/// One walk. Reads the thread's own stack only, whatever the tables say: never faults.
class StackWalk {
public:
  /// `stack_high` is the end of the stack that `start.sp` lies on.
  StackWalk(AddressCache &addresses, const Registers &start, uintptr_t stack_high)
      : addresses_(addresses), at_(start), stack_high_(stack_high) {}

  /// Go to the next frame out, the first time to that of `start`. False when there is none.
  bool next(NativeFrame &frame);
  WalkEnd end() const { return end_; }
  /// Whether libgcc had to be asked, which is slow.
  bool isByLibgcc() const { return is_by_libgcc_; }

private:
  bool nextByLibgcc(NativeFrame &frame);
  bool askLibgcc();
  bool finish(WalkEnd end) {
    end_ = end;
    at_.pc = 0;
    return false;
  }
  bool isReadable(uintptr_t address) const {
    return address >= low_ && address <= stack_high_ - sizeof(uintptr_t) && address % 8 == 0;
  }

  AddressCache &addresses_;
  Registers at_; // of the frame that comes next; pc is 0 past the last
  uintptr_t stack_high_;
  uintptr_t low_ = at_.sp;
  WalkEnd end_ = WalkEnd::kNotYet;
  bool is_by_libgcc_ = false;
  std::vector<NativeFrame> rest_; // what libgcc found further out, innermost first
  size_t rest_position_ = 0;
};

} // namespace deepcontext::unwind
