#pragma once
// Which outermost call of a module each thread is in.
#include <Python.h>

#include <cstdint>

namespace deepcontext {

/// Counts the outermost calls of modules, because a frame alone does not show whether an operator
/// runs again in the same call, in a loop of `forward`, or in the next one: a frame of the next
/// call has the same address, code and instruction.
///
/// Replaces the `vectorcall` of the function that every call of a module runs. A call from Python
/// code, which needs no such slot on Python 3.11, is not counted.
class ModuleCalls {
public:
  /// From now on, count calls of `function` instead of those of an earlier one. GIL held.
  static void watch(PyObject *function);
  /// No longer count. GIL held.
  static void unwatch();

  /// The number of the outermost call that the calling thread is in; 0 in none.
  static uint64_t current() { return t_calls.depth > 0 ? t_calls.number : 0; }

private:
  static PyObject *onCall(PyObject *function, PyObject *const *arguments, size_t flags_and_count,
                          PyObject *keywords);

  struct Calls {
    uint64_t number;
    uint64_t depth;
  };
  static inline thread_local Calls t_calls{0, 0};
};

} // namespace deepcontext
