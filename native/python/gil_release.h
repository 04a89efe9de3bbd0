#pragma once
// Gives Python's GIL up for a while.
#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace deepcontext {

/// The GIL is given up for as long as this exists. Made with the GIL held.
///
/// An interpreter that ends lets no other thread have the GIL any more: up to CPython 3.13 it ends
/// such a thread by unwinding its stack, which would end the process at the first C++ frame that
/// lets no exception pass, as nanobind's do. Here the thread waits for the end of the process, as
/// it does on CPython 3.14.
class GilRelease {
public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  ~GilRelease() {
    try {
      PyEval_RestoreThread(state_);
    } catch (abi::__forced_unwind &) {
      while (true) {
        pause();
      }
    }
  }
  GilRelease(const GilRelease &) = delete;
  GilRelease &operator=(const GilRelease &) = delete;

private:
  PyThreadState *state_;
};

} // namespace deepcontext
