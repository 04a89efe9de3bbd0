#include "unwind/call_frame_program.h"

namespace deepcontext::unwind {

bool CallFrameProgram::run(ByteRange function) {
  bool is_run = runAll(common_.program);
  initial_ = row_;
  return is_run && runAll(function);
}

bool CallFrameProgram::runAll(ByteRange program) {
  DwarfReader reader(program.begin, program.end);
  while (!reader.isAtEnd()) {
    if (!execute(reader) || reader.hasFailed()) {
      return false;
    }
    if (at_ > wanted_) {
      return true;
    }
  }
  return true;
}

bool CallFrameProgram::execute(DwarfReader &reader) {
  uint8_t code = reader.byte();
  uint8_t operand = code & 0x3f;
  switch (code & 0xc0) {
  case 0x40: // advance_loc
    advance(operand);
    return true;
  case 0x80: // offset
    saveAt(operand, static_cast<int64_t>(reader.unsignedLeb()));
    return true;
  case 0xc0: // restore
    restore(operand);
    return true;
  default:
    return code <= 0x09   ? executeMove(code, reader)
           : code <= 0x16 ? executeDefinition(code, reader)
                          : executeVendor(code, reader);
  }
}

bool CallFrameProgram::executeMove(uint8_t code, DwarfReader &reader) {
  switch (code) {
  case 0x00: // nop
    return true;
  case 0x01: // set_loc
    at_ = reader.pointer(common_.pointer_encoding, 0);
    return true;
  case 0x02: // advance_loc1, 2, 4
    advance(reader.number<uint8_t>());
    return true;
  case 0x03:
    advance(reader.number<uint16_t>());
    return true;
  case 0x04:
    advance(reader.number<uint32_t>());
    return true;
  case 0x05: { // offset_extended
    uint64_t column = reader.unsignedLeb();
    saveAt(column, static_cast<int64_t>(reader.unsignedLeb()));
    return true;
  }
  case 0x06: // restore_extended
    restore(reader.unsignedLeb());
    return true;
  case 0x07: // undefined
    save(reader.unsignedLeb(), {Saved::kUndefined});
    return true;
  case 0x08: // same_value
    save(reader.unsignedLeb(), {Saved::kSame});
    return true;
  default: // 0x09, register
    save(reader.unsignedLeb(), {Saved::kOdd});
    reader.unsignedLeb();
    return true;
  }
}

bool CallFrameProgram::executeDefinition(uint8_t code, DwarfReader &reader) {
  switch (code) {
  case 0x0a: // remember_state
    return rememberRow();
  case 0x0b: // restore_state
    return restoreRow();
  case 0x0c: { // def_cfa
    uint64_t column = reader.unsignedLeb();
    defineCfa(column, static_cast<int64_t>(reader.unsignedLeb()));
    return true;
  }
  case 0x0d: // def_cfa_register
    defineCfa(reader.unsignedLeb(), row_.cfa_offset);
    return true;
  case 0x0e: // def_cfa_offset
    row_.cfa_offset = static_cast<int64_t>(reader.unsignedLeb());
    return true;
  case 0x0f: { // def_cfa_expression
    uint64_t bytes = reader.unsignedLeb();
    row_.expression.begin = reader.skip(bytes);
    row_.expression.end = reader.position();
    return true;
  }
  case 0x10: // expression
    saveByExpression(reader);
    return true;
  case 0x11: { // offset_extended_sf
    uint64_t column = reader.unsignedLeb();
    saveAt(column, reader.signedLeb());
    return true;
  }
  case 0x12: { // def_cfa_sf
    uint64_t column = reader.unsignedLeb();
    defineCfa(column, offsetOf(reader.signedLeb()));
    return true;
  }
  case 0x13: // def_cfa_offset_sf
    row_.cfa_offset = offsetOf(reader.signedLeb());
    return true;
  case 0x14: // val_offset, val_offset_sf: a number each
  case 0x15:
    save(reader.unsignedLeb(), {Saved::kOdd});
    reader.unsignedLeb();
    return true;
  default: // 0x16, val_expression
    save(reader.unsignedLeb(), {Saved::kOdd});
    reader.skip(reader.unsignedLeb());
    return true;
  }
}

bool CallFrameProgram::executeVendor(uint8_t code, DwarfReader &reader) {
  switch (code) {
  case 0x2c: // AARCH64_negate_ra_state_with_pc
  case 0x2d: // AARCH64_negate_ra_state: the return address is signed from here on, or no longer
    row_.is_return_signed = !row_.is_return_signed;
    return registers_.can_sign;
  case 0x2e: // GNU_args_size
    reader.unsignedLeb();
    return true;
  default:
    return false;
  }
}

bool CallFrameProgram::rememberRow() {
  if (remembered_count_ == kMostRemembered) {
    return false;
  }
  remembered_[remembered_count_++] = row_;
  return true;
}

bool CallFrameProgram::restoreRow() {
  if (remembered_count_ == 0) {
    return false;
  }
  row_ = remembered_[--remembered_count_];
  return true;
}

/// Functions of x86-64 that realign their stack keep the caller's frame pointer where the frame
/// pointer points to: breg6 0.
void CallFrameProgram::saveByExpression(DwarfReader &reader) {
  constexpr uint64_t kBaseRegister = 0x70; // breg0
  uint64_t column = reader.unsignedLeb();
  uint64_t bytes = reader.unsignedLeb();
  const uint8_t *expression = reader.skip(bytes);
  bool is_at_frame_pointer = !reader.hasFailed() && bytes == 2 &&
                             expression[0] == kBaseRegister + registers_.frame_pointer &&
                             expression[1] == 0;
  save(column, {is_at_frame_pointer ? Saved::kAtFramePointer : Saved::kOdd});
}

void CallFrameProgram::save(uint64_t column, SavedRegister saved) {
  if (column == registers_.frame_pointer) {
    row_.frame_pointer = saved;
  } else if (column == registers_.return_address) {
    row_.return_address = saved;
  }
}

/// Unsigned, because in a damaged table the product may not fit.
int64_t CallFrameProgram::offsetOf(int64_t factored) const {
  return static_cast<int64_t>(static_cast<uint64_t>(factored) *
                              static_cast<uint64_t>(common_.data_factor));
}

void CallFrameProgram::saveAt(uint64_t column, int64_t factored) {
  save(column, {Saved::kAtOffset, offsetOf(factored)});
}

void CallFrameProgram::restore(uint64_t column) {
  if (column == registers_.frame_pointer) {
    row_.frame_pointer = initial_.frame_pointer;
  } else if (column == registers_.return_address) {
    row_.return_address = initial_.return_address;
  }
}

void CallFrameProgram::defineCfa(uint64_t column, int64_t offset) {
  row_.expression = {};
  row_.cfa_register = column;
  row_.cfa_offset = offset;
}

} // namespace deepcontext::unwind
