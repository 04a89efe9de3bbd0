#pragma once
// Runs call frame instructions, which say where a function's caller is, up to one place in the
// function. The same for every processor, up to the numbers of its registers.
// Source: DWARF 5, section 6.4; DWARF for the Arm 64-bit Architecture (pointer authentication).
#include <array>
#include <cstdint>

#include "unwind/dwarf_reader.h"

namespace deepcontext::unwind {

/// DWARF's numbers of the registers that a walk follows.
struct DwarfRegisters {
  uint64_t frame_pointer, stack_pointer, return_address;
  bool can_sign; // return addresses
};

enum class Saved : uint8_t {
  kSame,           // still in the register
  kAtOffset,       // at the canonical frame address (CFA) + offset
  kAtFramePointer, // where the frame pointer points to
  kUndefined,
  kOdd, // in another way
};

struct SavedRegister {
  Saved how = Saved::kSame;
  int64_t offset = 0;
};

/// One row of the virtual unwinding table, of the columns that matter here.
struct FrameRow {
  uint64_t cfa_register = 0;
  int64_t cfa_offset = 0;
  ByteRange expression; // that computes the CFA; empty where it is the register + offset
  SavedRegister frame_pointer, return_address;
  bool is_return_signed = false;
};

/// A common information entry: what its functions share.
struct CommonEntry {
  uint64_t code_factor = 1;
  int64_t data_factor = 1;
  uint8_t pointer_encoding = 0;
  bool is_augmented = false;
  bool is_signal_frame = false;
  ByteRange program;
};

class CallFrameProgram {
public:
  /// Of a function that starts at `start`; `wanted` is an address in the function.
  CallFrameProgram(const CommonEntry &common, const DwarfRegisters &registers, uintptr_t start,
                   uintptr_t wanted)
      : common_(common), registers_(registers), at_(start), wanted_(wanted) {
    row_.cfa_register = registers.stack_pointer;
  }

  /// Run the common instructions, then the function's own. False when an instruction is unknown or
  /// a program is cut.
  bool run(ByteRange function);
  const FrameRow &row() const { return row_; }

private:
  static constexpr size_t kMostRemembered = 16;

  bool runAll(ByteRange program);
  bool execute(DwarfReader &reader);
  bool executeMove(uint8_t code, DwarfReader &reader);
  bool executeDefinition(uint8_t code, DwarfReader &reader);
  bool executeVendor(uint8_t code, DwarfReader &reader);
  bool rememberRow();
  bool restoreRow();
  void saveByExpression(DwarfReader &reader);
  void save(uint64_t column, SavedRegister saved);
  int64_t offsetOf(int64_t factored) const;
  void saveAt(uint64_t column, int64_t factored);
  void restore(uint64_t column);
  void defineCfa(uint64_t column, int64_t offset);
  void advance(uint64_t steps) { at_ += steps * common_.code_factor; }

  const CommonEntry &common_;
  const DwarfRegisters &registers_;
  uintptr_t at_;
  uintptr_t wanted_;
  FrameRow row_, initial_;
  std::array<FrameRow, kMostRemembered> remembered_;
  size_t remembered_count_ = 0;
};

} // namespace deepcontext::unwind
