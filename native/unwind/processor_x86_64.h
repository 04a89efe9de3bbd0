#pragma once
// Frames of x86-64: the return address is always just below the canonical frame address (CFA).
#include <cstdint>
#include <elf.h>

#include "unwind/call_frame_program.h"
#include "unwind/frame_rule.h"
#include "unwind/registers.h"
#include "unwind/stack_range.h"

namespace deepcontext::unwind {

struct X86_64 {
  static constexpr DwarfRegisters kRegisters{6, 7, 16, false}; // rbp, rsp, the return address
  static constexpr uint16_t kElfMachine = EM_X86_64;

  struct Rule {
    int32_t cfa_offset = 0;
    int16_t frame_pointer_offset = 0; // the caller's rbp is at CFA + this; 0: still in the register
    RuleKind kind : 4;
    bool is_at_frame_pointer : 1; // the caller's rbp is where rbp points to
    uint8_t tag : 3;              // the owner's: a rule has no room to spare in a cache

    Rule() : kind(RuleKind::kUnknown), is_at_frame_pointer(false), tag(0) {}
  };

  static Rule ruleOf(const FrameRow &row) {
    Rule rule;
    const SavedRegister &saved = row.frame_pointer;
    if (row.return_address.how == Saved::kUndefined) {
      rule.kind = RuleKind::kOutermost;
      return rule;
    }
    bool is_usual = row.return_address.how == Saved::kAtOffset && row.return_address.offset == -8 &&
                    saved.how != Saved::kOdd && saved.how != Saved::kUndefined &&
                    saved.offset == static_cast<int16_t>(saved.offset);
    if (!is_usual) {
      return rule;
    }
    if (row.expression.begin) {
      loadCfa(row.expression, &rule);
    } else if (row.cfa_offset == static_cast<int32_t>(row.cfa_offset)) {
      rule.kind = row.cfa_register == kRegisters.stack_pointer   ? RuleKind::kStackPointer
                  : row.cfa_register == kRegisters.frame_pointer ? RuleKind::kFramePointer
                                                                 : RuleKind::kUnknown;
      rule.cfa_offset = static_cast<int32_t>(row.cfa_offset);
    }
    rule.frame_pointer_offset =
        saved.how == Saved::kAtOffset ? static_cast<int16_t>(saved.offset) : int16_t{0};
    rule.is_at_frame_pointer = saved.how == Saved::kAtFramePointer;
    return rule;
  }

  /// The CFA by a rule of another kind than kStackPointer; 0 where it cannot be read.
  template <typename Stack>
  static uintptr_t cfaOf(const Rule &rule, const Registers &at, const Stack &stack) {
    if (rule.kind == RuleKind::kFramePointer) {
      return at.frame_pointer + rule.cfa_offset;
    }
    uintptr_t base = rule.kind == RuleKind::kStackPointerLoaded ? at.sp : at.frame_pointer;
    return stack.read(base + rule.cfa_offset);
  }

  /// Where the return address is.
  static uintptr_t returnPlace(const Rule &, uintptr_t cfa) { return cfa - 8; }

  /// Go from a frame to its caller's; the return address can be read.
  template <typename Stack>
  static void goToCaller(const Rule &rule, uintptr_t cfa, const Stack &stack, Registers *at) {
    if (rule.frame_pointer_offset != 0 || rule.is_at_frame_pointer) {
      at->frame_pointer = stack.read(rule.is_at_frame_pointer ? at->frame_pointer
                                                              : cfa + rule.frame_pointer_offset);
    }
    at->pc = stack.readKnown(returnPlace(rule, cfa));
    at->sp = cfa;
  }

private:
  /// `breg7 n; deref` or `breg6 n; deref`: the one form of expression that compilers make.
  static void loadCfa(ByteRange expression, Rule *rule) {
    DwarfReader reader(expression.begin, expression.end);
    uint8_t base = reader.byte();
    int64_t offset = reader.signedLeb();
    bool is_loaded = reader.byte() == 0x06 && reader.isAtEnd() && !reader.hasFailed();
    if (is_loaded && offset == static_cast<int32_t>(offset) && (base == 0x76 || base == 0x77)) {
      rule->kind = base == 0x76 ? RuleKind::kFramePointerLoaded : RuleKind::kStackPointerLoaded;
      rule->cfa_offset = static_cast<int32_t>(offset);
    }
  }
};

} // namespace deepcontext::unwind
