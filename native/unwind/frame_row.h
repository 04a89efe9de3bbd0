#pragma once
// Looks up, in an object's .eh_frame, where the caller of a function is at one place of it.
#include <cstdint>
#include <optional>

#include "unwind/call_frame_program.h"
#include "unwind/dwarf_reader.h"

namespace deepcontext::unwind {

struct FunctionRow {
  FrameRow row; // the CFA by no register where the table's program cannot be run
  uintptr_t function_start = 0;
};

/// The row for code at `pc`, looked up in an object's .eh_frame_hdr; none where the object's table
/// does not cover the address. The object must stay loaded meanwhile.
///
/// Reads only inside `segment`, the loaded part of the object with the header, because tools that
/// rewrite objects may leave wrong tables.
std::optional<FunctionRow> findRow(const uint8_t *eh_frame_hdr, ByteRange segment, uintptr_t pc,
                                   const DwarfRegisters &registers);

} // namespace deepcontext::unwind
