#pragma once
// How to get from a return address to the caller's frame: the few rules that compilers use on
// x86-64, read from an object's .eh_frame.
#include <cstdint>
#include <optional>

#include "unwind/dwarf_reader.h"

namespace deepcontext::unwind {

enum class RuleKind : uint8_t {
  kUnknown,    // the table has no rule, or one of another shape
  kRsp,        // the canonical frame address (CFA) is rsp + offset
  kRbp,        // rbp + offset
  kRspPointer, // the value at rsp + offset
  kRbpPointer, // the value at rbp + offset: a function that realigns its stack
  kOutermost,  // the frame has no caller
};

/// Where the caller's frame is. The return address is always at CFA - 8.
struct FrameRule {
  int32_t cfa_offset = 0;
  int16_t rbp_offset = 0; // the caller's rbp is at CFA + this; 0: still in the register
  RuleKind kind = RuleKind::kUnknown;
  bool is_rbp_at_rbp = false; // the caller's rbp is where rbp points to
};

struct FunctionRule {
  FrameRule rule;
  uintptr_t function_start = 0;
};

/// The rule for code at `pc`, looked up in an object's .eh_frame_hdr; none where the object's table
/// does not cover the address. The object must stay loaded meanwhile.
///
/// Reads only inside `segment`, the loaded part of the object with the header, because tools that
/// rewrite objects may leave wrong tables.
std::optional<FunctionRule> findRule(const uint8_t *eh_frame_hdr, ByteRange segment, uintptr_t pc);

} // namespace deepcontext::unwind
