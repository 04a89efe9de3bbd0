#pragma once
// Names of functions, from the symbol tables of an ELF file.
#include <cstdint>
#include <string>
#include <vector>

namespace deepcontext::unwind {

/// The symbol (as the linker knows it) of the function at each of `offsets`, which are addresses in
/// the file; "" where there is none. A file whose build id is not `build_id` ("" for any) was
/// replaced since it was loaded and names nothing. Symbols of a stripped file are read from its
/// debug file, found by build id.
///
/// One pass over the table for all offsets: milliseconds for half a million symbols.
std::vector<std::string> symbolsAt(const std::string &path, const std::string &build_id,
                                   const std::vector<uint64_t> &offsets);

} // namespace deepcontext::unwind
