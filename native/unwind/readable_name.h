#pragma once
// Names of native functions as a profile shows them.
#include <cstdint>
#include <string>

namespace deepcontext::unwind {

/// A C++ symbol with return type and parameters; other names come back as they are.
std::string demangledName(const std::string &symbol);

/// A readable symbol: demangled, without return type, parameters and the compiler's suffixes
/// (".cold", ".part.0"), and functions of Cython as Python calls them.
std::string readableName(const std::string &symbol);

/// A function of the C library by its public name: without the marks of an internal alias and of a
/// processor's variant ("__memmove_avx512_unaligned_erms": "memmove").
std::string withoutVariant(const std::string &name);

/// The name of a function that has no symbol: "libfoo.so+0x1234", the address in the file.
std::string unresolvedName(const std::string &path, uint64_t offset);

} // namespace deepcontext::unwind
