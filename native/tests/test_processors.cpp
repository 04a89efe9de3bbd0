// The frames of each processor, read from tables as compilers write them, whatever the processor
// that runs the test.
#include <array>

#include "tests/check.h"
#include "tests/unwind_table.h"
#include "unwind/processor.h"

using namespace deepcontext::test;
using namespace deepcontext::unwind;

namespace {

constexpr uint8_t kDefCfa = 0x0c, kDefCfaOffset = 0x0e, kDefCfaExpression = 0x0f;
constexpr uint8_t kUndefined = 0x07, kRemember = 0x0a, kRestoreState = 0x0b, kNegateState = 0x2d;

/// `steps` instructions of 4 bytes later.
uint8_t advance(uint8_t steps) {
  return static_cast<uint8_t>(0x40 | steps);
}
/// The register is saved at CFA - 8 * `words`, or has its first value again.
Bytes offset(uint8_t column, uint8_t words) {
  return {static_cast<uint8_t>(0x80 | column), words};
}
uint8_t restore(uint8_t column) {
  return static_cast<uint8_t>(0xc0 | column);
}

TestFunction aarch64(const Bytes &program) {
  return {Aarch64::kRegisters, {kDefCfa, 31, 0}, program};
}

Aarch64::Rule aarch64Rule(const TestFunction &function, uintptr_t offset) {
  return Aarch64::ruleOf(function.at(offset));
}

/// A stack of words; the addresses of `place` are inside it.
struct TestStack {
  std::array<uintptr_t, 32> words{};

  uintptr_t place(size_t word) const { return reinterpret_cast<uintptr_t>(&words[word]); }
  StackRange range() const { return {place(0), place(31) + 8}; }
};

/// Go from a frame to its caller's.
template <typename OneProcessor>
Registers callerOf(const typename OneProcessor::Rule &rule, Registers at, const TestStack &stack) {
  uintptr_t cfa = rule.kind == RuleKind::kStackPointer
                      ? at.sp + rule.cfa_offset
                      : OneProcessor::cfaOf(rule, at, stack.range());
  CHECK(stack.range().isReadable(OneProcessor::returnPlace(rule, cfa)));
  OneProcessor::goToCaller(rule, cfa, stack.range(), &at);
  return at;
}

} // namespace

TEST(aarch64_finds_the_pair_that_gcc_saves_at_the_bottom_of_a_frame) {
  // stp x29, x30, [sp, -48]!; mov x29, sp; ...; ldp x29, x30, [sp], 48; ret
  TestFunction function =
      aarch64(Bytes{advance(1), kDefCfaOffset, 48} + offset(29, 6) + offset(30, 5) +
              Bytes{advance(5), restore(30), restore(29), kDefCfaOffset, 0});
  CHECK(aarch64Rule(function, 0).kind == RuleKind::kUnknown); // x30 is not saved yet
  Aarch64::Rule rule = aarch64Rule(function, 8);
  CHECK(rule.kind == RuleKind::kStackPointer);
  CHECK_EQ(rule.cfa_offset, 48);
  CHECK_EQ(rule.return_offset, -40);
  CHECK(!rule.is_return_signed);
  CHECK(aarch64Rule(function, 24).kind == RuleKind::kUnknown);

  TestStack stack;
  stack.words[4] = 0x2222; // the caller's x29
  stack.words[5] = 0x1111; // the return address
  Registers caller = callerOf<Aarch64>(rule, {1, stack.place(4), stack.place(4)}, stack);
  CHECK_EQ(caller.pc, uintptr_t{0x1111});
  CHECK_EQ(caller.frame_pointer, uintptr_t{0x2222});
  CHECK_EQ(caller.sp, stack.place(10));
}

TEST(aarch64_finds_the_pair_that_clang_saves_at_the_top_of_a_frame) {
  // sub sp, sp, 64; stp x29, x30, [sp, 48]; add x29, sp, 48
  TestFunction function =
      aarch64(Bytes{advance(1), kDefCfaOffset, 64, advance(2), kDefCfa, 29, 16} + offset(30, 1) +
              offset(29, 2));
  Aarch64::Rule rule = aarch64Rule(function, 12);
  CHECK(rule.kind == RuleKind::kFramePointer);
  CHECK_EQ(rule.cfa_offset, 16);
  CHECK_EQ(rule.return_offset, -8);

  TestStack stack;
  stack.words[10] = 0x2222;
  stack.words[11] = 0x1111;
  Registers caller = callerOf<Aarch64>(rule, {1, stack.place(4), stack.place(10)}, stack);
  CHECK_EQ(caller.pc, uintptr_t{0x1111});
  CHECK_EQ(caller.frame_pointer, uintptr_t{0x2222});
  CHECK_EQ(caller.sp, stack.place(12));
}

TEST(aarch64_keeps_a_frame_pointer_that_was_not_saved) {
  // str x30, [sp, -16]!
  TestFunction function = aarch64(Bytes{advance(1), kDefCfaOffset, 16} + offset(30, 2));
  TestStack stack;
  stack.words[4] = 0x1111;
  Registers caller =
      callerOf<Aarch64>(aarch64Rule(function, 4), {1, stack.place(4), 0x2222}, stack);
  CHECK_EQ(caller.pc, uintptr_t{0x1111});
  CHECK_EQ(caller.frame_pointer, uintptr_t{0x2222});
}

TEST(aarch64_knows_where_a_return_address_is_signed) {
  // paciasp; stp x29, x30, [sp, -16]!; ...; ldp x29, x30, [sp], 16; autiasp; ret; a second way out
  TestFunction function =
      aarch64(Bytes{advance(1), kNegateState, advance(1), kDefCfaOffset, 16} + offset(29, 2) +
              offset(30, 1) +
              Bytes{advance(2), kRemember, restore(30), restore(29), kDefCfaOffset, 0, advance(1),
                    kNegateState, advance(1), kRestoreState});
  CHECK(!function.at(0).is_return_signed);
  CHECK(function.at(4).is_return_signed);
  CHECK(aarch64Rule(function, 12).is_return_signed);
  CHECK(!function.at(20).is_return_signed);
  CHECK(aarch64Rule(function, 24).is_return_signed);
}

TEST(aarch64_ends_at_a_function_without_a_caller) {
  TestFunction function = aarch64({kUndefined, 30});
  CHECK(aarch64Rule(function, 4).kind == RuleKind::kOutermost);
}

TEST(aarch64_leaves_odd_frames_to_libgcc) {
  Bytes pair = offset(29, 2) + offset(30, 1);
  // scalable vectors: CFA = sp + 16 + 8 * vg
  Bytes vectors{kDefCfaExpression, 10, 0x8f, 16, 0x92, 46, 0, 0x11, 8, 0x1e, 0x22, 0x96};
  CHECK(aarch64Rule(aarch64(pair + vectors), 4).kind == RuleKind::kUnknown);
  // the CFA by x19
  CHECK(aarch64Rule(aarch64(pair + Bytes{kDefCfa, 19, 16}), 4).kind == RuleKind::kUnknown);
  // the frame pointer too far from the return address for a rule
  Bytes far{0x05, 29, 0x80, 0x08}; // offset_extended, 1,024 words
  CHECK(aarch64Rule(aarch64(far + offset(30, 1)), 4).kind == RuleKind::kUnknown);
  CHECK(aarch64Rule(aarch64(pair), 4).kind == RuleKind::kStackPointer);
}

TEST(x86_64_finds_the_return_address_below_the_cfa) {
  // push rbp; mov rbp, rsp
  TestFunction function(X86_64::kRegisters, Bytes{kDefCfa, 7, 8} + offset(16, 1),
                        Bytes{advance(1), kDefCfaOffset, 16} + offset(6, 2) +
                            Bytes{advance(1), 0x0d, 6}); // def_cfa_register
  X86_64::Rule rule = X86_64::ruleOf(function.at(4));
  CHECK(rule.kind == RuleKind::kStackPointer);
  CHECK_EQ(rule.cfa_offset, 16);
  rule = X86_64::ruleOf(function.at(8));
  CHECK(rule.kind == RuleKind::kFramePointer);

  TestStack stack;
  stack.words[8] = 0x2222;
  stack.words[9] = 0x1111;
  Registers caller = callerOf<X86_64>(rule, {1, stack.place(4), stack.place(8)}, stack);
  CHECK_EQ(caller.pc, uintptr_t{0x1111});
  CHECK_EQ(caller.frame_pointer, uintptr_t{0x2222});
  CHECK_EQ(caller.sp, stack.place(10));
}

TEST(x86_64_follows_a_realigned_stack) {
  // CFA = the value at rbp - 8; the caller's rbp is where rbp points to
  Bytes program{kDefCfaExpression, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0};
  TestFunction function(X86_64::kRegisters, Bytes{kDefCfa, 7, 8} + offset(16, 1), program);
  X86_64::Rule rule = X86_64::ruleOf(function.at(4));
  CHECK(rule.kind == RuleKind::kFramePointerLoaded);
  TestStack stack;
  stack.words[7] = stack.place(20); // the CFA
  stack.words[8] = 0x2222;
  stack.words[19] = 0x1111;
  Registers caller = callerOf<X86_64>(rule, {1, stack.place(4), stack.place(8)}, stack);
  CHECK_EQ(caller.pc, uintptr_t{0x1111});
  CHECK_EQ(caller.frame_pointer, uintptr_t{0x2222});
  CHECK_EQ(caller.sp, stack.place(20));
}

TEST(x86_64_knows_no_signed_return_address) {
  Bytes common = Bytes{kDefCfa, 7, 8} + offset(16, 1);
  TestFunction function(X86_64::kRegisters, common, {kNegateState});
  CHECK(X86_64::ruleOf(function.at(4)).kind == RuleKind::kUnknown);
  CHECK(X86_64::ruleOf(TestFunction(X86_64::kRegisters, common, {}).at(4)).kind ==
        RuleKind::kStackPointer);
}
