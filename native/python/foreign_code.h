#pragma once
// Code objects that nobody keeps alive for the reader.
#include <optional>

#include "python/code_table.h"

namespace deepcontext {

class MemoryReader;

/// Describe what may be a code object, role and marker left out; none where it is none. Whatever
/// lies at the address, a dead object or one of another kind, and whatever its pointers lead to:
/// everything is copied by the kernel, and lengths are bounded.
std::optional<CodeInfo> describeForeignCode(const void *address, const MemoryReader &memory);

} // namespace deepcontext
