#pragma once
// Names of functions, out of the symbol tables of an ELF file.
#include <cstdint>
#include <string>
#include <vector>

namespace deepcontext::unwind {

/// The symbol (as the linker knows it) of the function at each of `offsets`, which are addresses in
/// the file; "" where there is none. The file must still have `build_id` ("" for any): an object
/// that was replaced since it was loaded names nothing. A stripped file's symbols are looked for in
/// its debug file, by build id.
///
/// One pass over the table for all offsets: milliseconds for half a million symbols.
std::vector<std::string> symbolsAt(const std::string &path, const std::string &build_id,
                                   const std::vector<uint64_t> &offsets);

} // namespace deepcontext::unwind
