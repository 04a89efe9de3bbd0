#pragma once
// How to get from one frame to its caller's: a row of the table in the few forms that compilers
// write, small enough for a cache of return addresses. The forms of each processor are in its file.
#include <cstdint>

namespace deepcontext::unwind {

enum class RuleKind : uint8_t {
  kUnknown,            // the table has no row, or one of another form
  kStackPointer,       // the canonical frame address (CFA) is the stack pointer + offset
  kFramePointer,       // the frame pointer + offset
  kStackPointerLoaded, // the value at the stack pointer + offset
  kFramePointerLoaded, // the value at the frame pointer + offset: a function that realigns its
                       // stack
  kOutermost,          // the frame has no caller
};

} // namespace deepcontext::unwind
