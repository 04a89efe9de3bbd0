#pragma once
// Frames of aarch64: a call leaves its return address in x30, which the called function saves,
// usually in a pair with the frame pointer, and may sign before that.
// Source: DWARF for the Arm 64-bit Architecture, section 4.1.
#include <cstdint>
#include <elf.h>

#include "unwind/call_frame_program.h"
#include "unwind/frame_rule.h"
#include "unwind/registers.h"
#include "unwind/stack_range.h"

namespace deepcontext::unwind {

struct Aarch64 {
  static constexpr DwarfRegisters kRegisters{29, 31, 30, true}; // x29, sp, x30
  static constexpr uint16_t kElfMachine = EM_AARCH64;

  struct Rule {
    int32_t cfa_offset = 0;
    int16_t return_offset = 0;     // the return address is at CFA + this
    int8_t frame_pointer_word = 0; // the caller's x29 is this many words after it; 0: in x29
    RuleKind kind : 4;
    bool is_return_signed : 1;
    uint8_t tag : 3; // the owner's: a rule has no room to spare in a cache

    Rule() : kind(RuleKind::kUnknown), is_return_signed(false), tag(0) {}
  };

  /// Frames of other forms are left to libgcc: those of functions with scalable vectors, whose CFA
  /// is an expression, and those that have not saved x30.
  static Rule ruleOf(const FrameRow &row) {
    Rule rule;
    if (row.return_address.how == Saved::kUndefined) {
      rule.kind = RuleKind::kOutermost;
      return rule;
    }
    int64_t return_offset = row.return_address.offset;
    bool is_saved = row.return_address.how == Saved::kAtOffset &&
                    return_offset == static_cast<int16_t>(return_offset);
    bool is_usual = is_saved && !row.expression.begin &&
                    row.cfa_offset == static_cast<int32_t>(row.cfa_offset) &&
                    placeFramePointer(row, &rule);
    if (!is_usual) {
      return rule;
    }
    rule.kind = row.cfa_register == kRegisters.stack_pointer   ? RuleKind::kStackPointer
                : row.cfa_register == kRegisters.frame_pointer ? RuleKind::kFramePointer
                                                               : RuleKind::kUnknown;
    rule.cfa_offset = static_cast<int32_t>(row.cfa_offset);
    rule.return_offset = static_cast<int16_t>(return_offset);
    rule.is_return_signed = row.is_return_signed;
    return rule;
  }

  /// The CFA by a rule of another kind than kStackPointer.
  template <typename Stack>
  static uintptr_t cfaOf(const Rule &rule, const Registers &at, const Stack &) {
    return at.frame_pointer + rule.cfa_offset;
  }

  /// Where the return address is.
  static uintptr_t returnPlace(const Rule &rule, uintptr_t cfa) { return cfa + rule.return_offset; }

  /// Go from a frame to its caller's; the return address can be read.
  template <typename Stack>
  static void goToCaller(const Rule &rule, uintptr_t cfa, const Stack &stack, Registers *at) {
    uintptr_t place = returnPlace(rule, cfa);
    if (rule.frame_pointer_word != 0) {
      at->frame_pointer = stack.read(place + rule.frame_pointer_word * intptr_t{8});
    }
    uintptr_t address = stack.readKnown(place);
    at->pc = __builtin_expect(rule.is_return_signed, 0) ? withoutSignature(address) : address;
    at->sp = cfa;
  }

private:
  static bool placeFramePointer(const FrameRow &row, Rule *rule) {
    if (row.frame_pointer.how == Saved::kSame) {
      return true;
    }
    auto distance = static_cast<int64_t>(static_cast<uint64_t>(row.frame_pointer.offset) -
                                         static_cast<uint64_t>(row.return_address.offset));
    rule->frame_pointer_word = static_cast<int8_t>(distance / 8);
    return row.frame_pointer.how == Saved::kAtOffset && distance != 0 &&
           rule->frame_pointer_word * int64_t{8} == distance;
  }
};

} // namespace deepcontext::unwind
