#pragma once
// Python code of the profiler, on a thread of the profiler.
#include <Python.h>

namespace deepcontext {

/// Holds the GIL while it exists. What the program traces, profiles or monitors its code with
/// (coverage, debuggers) does not see this thread meanwhile: `sys.monitoring` and
/// `threading.setprofile_all_threads` cover threads that Python has not started.
class OwnPython {
public:
  OwnPython() : gil_(PyGILState_Ensure()), thread_(PyThreadState_Get()) {
    PyThreadState_EnterTracing(thread_);
  }
  ~OwnPython() {
    PyThreadState_LeaveTracing(thread_);
    PyGILState_Release(gil_);
  }
  OwnPython(const OwnPython &) = delete;
  OwnPython &operator=(const OwnPython &) = delete;

  /// Call `work()`; what it raises is printed, as of any thread.
  void call(PyObject *work) {
    PyObject *result = PyObject_CallNoArgs(work);
    if (!result) {
      PyErr_WriteUnraisable(work);
    }
    Py_XDECREF(result);
  }

private:
  PyGILState_STATE gil_;
  PyThreadState *thread_;
};

} // namespace deepcontext
