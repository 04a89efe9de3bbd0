#pragma once
// Code objects that may be destroyed while they are read.
#include <optional>

#include "python/code_table.h"

namespace deepcontext {

class MemoryReader;

/// Describe a possible code object, without role and marker; none when there is none. Safe for any
/// address: the kernel copies everything, and lengths are bounded.
std::optional<CodeInfo> describeForeignCode(const void *address, const MemoryReader &memory);

} // namespace deepcontext
