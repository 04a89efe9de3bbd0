#pragma once
// Releases Python's GIL for a scope.
#include <Python.h>
#include <unistd.h>

namespace deepcontext {

/// The GIL is released while this exists. Constructed with the GIL held.
///
/// A finalising interpreter gives the GIL to no other thread. Up to CPython 3.13 it ends such a
/// thread by unwinding its stack, which would abort the process at the first noexcept C++ frame,
/// such as nanobind's. Here the thread waits for the end of the process, as on CPython 3.14.
class GilRelease {
public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  // Not noexcept, so that the unwinder runs the destructor below instead of ending the process.
  ~GilRelease() noexcept(false) { // NOLINT(bugprone-unsafe-to-allow-exceptions)
    Holder holder;
    PyEval_RestoreThread(state_);
    holder.is_needed = false;
  }
  GilRelease(const GilRelease &) = delete;
  GilRelease &operator=(const GilRelease &) = delete;

private:
  /// Holds a thread that is being ended. A destructor, because libc++ cannot catch this unwinding.
  struct Holder {
    bool is_needed = true;
    ~Holder() {
      while (is_needed) {
        pause();
      }
    }
  };

  PyThreadState *state_;
};

} // namespace deepcontext
