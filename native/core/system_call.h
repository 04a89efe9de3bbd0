#pragma once
// System calls that the C library has no function for. Async-signal-safe.
#include <cstdint>
#include <sys/syscall.h>
#include <type_traits>
#include <unistd.h>

namespace deepcontext {

/// An argument as wide as a register.
template <typename Argument> intptr_t inRegister(Argument argument) {
  static_assert(sizeof(intptr_t) == sizeof(long), "syscall reads longs");
  if constexpr (std::is_pointer_v<Argument>) {
    return reinterpret_cast<intptr_t>(argument);
  } else {
    return static_cast<intptr_t>(argument);
  }
}

/// `syscall` reads its variadic arguments as longs. If an `int` is passed on the stack, its upper
/// half is undefined, which made process_vm_readv fail in a build by Clang.
template <typename... Arguments> long systemCall(long number, Arguments... arguments) {
  return ::syscall(number, inRegister(arguments)...);
}

} // namespace deepcontext
