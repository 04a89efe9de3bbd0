#pragma once
// Line numbers from a code object's location table (co_linetable).
#include <cstdint>
#include <string_view>

namespace deepcontext {

/// The source line of the instruction at byte `offset`, or 0 when the table gives it none.
/// Source: CPython, InternalDocs/code_objects.md (3.11: Objects/locations.md), "Format".
uint32_t lineOfInstruction(std::string_view table, int first_line, uint32_t offset);

} // namespace deepcontext
