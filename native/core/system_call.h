#pragma once
// System calls that the C library has no function for. Async-signal-safe.
#include <cstdint>
#include <sys/syscall.h>
#include <type_traits>
#include <unistd.h>

namespace deepcontext {

/// `syscall` with each argument as wide as a register.
///
/// `syscall` is variadic and reads longs: of an `int` argument that is passed on the stack, the upper half
/// is whatever was there, which made process_vm_readv fail in a build by Clang.
template <typename... Arguments> long systemCall(long number, Arguments... arguments) {
  auto widened = [](auto argument) {
    if constexpr (std::is_pointer_v<decltype(argument)>) {
      return reinterpret_cast<intptr_t>(argument);
    } else {
      return static_cast<intptr_t>(argument);
    }
  };
  static_assert(sizeof(intptr_t) == sizeof(long), "a register holds a pointer");
  return ::syscall(number, widened(arguments)...);
}

} // namespace deepcontext
