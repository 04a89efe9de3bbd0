#include "python/module_calls.h"

namespace deepcontext {

namespace {

// Written with the GIL held. Threads may be in a call while the slot is given back, and need it.
vectorcallfunc g_original = nullptr;
PyObject *g_function = nullptr;

void setSlot(PyObject *function, vectorcallfunc call) {
  auto *slots = reinterpret_cast<PyFunctionObject *>(function);
#if PY_VERSION_HEX >= 0x030c0000
  PyFunction_SetVectorcall(slots, call);
#else
  slots->func_version = 0; // so that specialised calls look at the slot again
  slots->vectorcall = call;
#endif
}

} // namespace

PyObject *ModuleCalls::onCall(PyObject *function, PyObject *const *arguments,
                              size_t flags_and_count, PyObject *keywords) {
  Calls &calls = t_calls;
  calls.number += calls.depth++ == 0;
  PyObject *result = g_original(function, arguments, flags_and_count, keywords);
  --calls.depth;
  return result;
}

void ModuleCalls::watch(PyObject *function) {
  unwatch();
  if (!PyFunction_Check(function)) {
    return;
  }
  g_function = Py_NewRef(function);
  g_original = reinterpret_cast<PyFunctionObject *>(function)->vectorcall;
  setSlot(function, onCall);
}

void ModuleCalls::unwatch() {
  PyObject *function = g_function;
  g_function = nullptr;
  if (!function) {
    return;
  }
  if (reinterpret_cast<PyFunctionObject *>(function)->vectorcall == onCall) {
    setSlot(function, g_original);
  }
  Py_DECREF(function);
}

} // namespace deepcontext
