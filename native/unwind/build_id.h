#pragma once
// The build id that linkers write into an object: the same for the object and its debug file.
#include <cstddef>
#include <cstdint>
#include <string>

namespace deepcontext::unwind {

/// The build id among a run of ELF notes, hexadecimal; "" when there is none.
std::string buildIdIn(const uint8_t *notes, size_t bytes);

} // namespace deepcontext::unwind
