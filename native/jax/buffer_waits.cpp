#include "jax/buffer_waits.h"

#include "core/clock.h"
#include "core/guard.h"
#include "jax/collectives.h"
#include "jax/spans.h"

namespace deepcontext::jax {

namespace {

constexpr char kWait[] = "jax: wait for the device";

getbufferproc g_original = nullptr; // GIL held

/// Only a request that succeeds has waited: arrays on other devices refuse it, and are copied
/// instead.
int onGetBuffer(PyObject *array, Py_buffer *view, int flags) {
  uint64_t start = ticks();
  Collectives::instance().setWaiting(true);
  int result = g_original(array, view, flags);
  Collectives::instance().setWaiting(false);
  if (result == 0) {
    guarded([&] { addWait(kWait, start, ticks(), static_cast<uint64_t>(view->len)); });
  }
  return result;
}

PyBufferProcs *buffersOf(PyObject *type) {
  PyBufferProcs *procs = reinterpret_cast<PyTypeObject *>(type)->tp_as_buffer;
  return procs && procs->bf_getbuffer ? procs : nullptr;
}

} // namespace

bool hookBuffer(PyObject *type, std::string *reason) {
  PyBufferProcs *procs = PyType_Check(type) ? buffersOf(type) : nullptr;
  if (!procs) {
    *reason = "arrays do not support the buffer protocol";
    return false;
  }
  if (procs->bf_getbuffer == onGetBuffer) {
    return true;
  }
  if (g_original && procs->bf_getbuffer != g_original) {
    *reason = "the buffer slot of arrays was replaced by another tool";
    return false;
  }
  g_original = procs->bf_getbuffer;
  procs->bf_getbuffer = onGetBuffer;
  return true;
}

void unhookBuffer(PyObject *type) {
  PyBufferProcs *procs = PyType_Check(type) ? buffersOf(type) : nullptr;
  if (procs && procs->bf_getbuffer == onGetBuffer) {
    procs->bf_getbuffer = g_original;
  }
}

} // namespace deepcontext::jax
