#include "python/watched_call.h"

#include <structmember.h>

#include <cstddef>

namespace deepcontext {

namespace {

struct WatchedCall {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *called;
  PyObject *before;
  PyObject *after;
};

PyTypeObject *g_type = nullptr; // set once, when the extension is imported

WatchedCall *cast(PyObject *self) {
  return reinterpret_cast<WatchedCall *>(self);
}

/// `after(token, result, *arguments)`; false with its exception.
bool callAfter(PyObject *after, PyObject *token, PyObject *result, PyObject *const *arguments,
               Py_ssize_t count) {
  PyObject *all = PyTuple_New(count + 2);
  if (!all) {
    return false;
  }
  PyTuple_SET_ITEM(all, 0, Py_NewRef(token));
  PyTuple_SET_ITEM(all, 1, Py_NewRef(result));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyTuple_SET_ITEM(all, i + 2, Py_NewRef(arguments[i]));
  }
  PyObject *ignored = PyObject_CallObject(after, all);
  Py_DECREF(all);
  Py_XDECREF(ignored);
  return ignored;
}

PyObject *onCall(PyObject *self, PyObject *const *arguments, size_t flags_and_count,
                 PyObject *keywords) {
  const WatchedCall &watched = *cast(self);
  Py_ssize_t count = PyVectorcall_NARGS(flags_and_count);
  PyObject *token = watched.before ? PyObject_Vectorcall(watched.before, arguments,
                                                         static_cast<size_t>(count), nullptr)
                                   : Py_NewRef(Py_None);
  if (!token) {
    return nullptr;
  }
  PyObject *result = PyObject_Vectorcall(watched.called, arguments, flags_and_count, keywords);
  if (watched.after) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (callAfter(watched.after, token, result ? result : Py_None, arguments, count)) {
      PyErr_Restore(type, value, traceback);
    } else {
      Py_XDECREF(type);
      Py_XDECREF(value);
      Py_XDECREF(traceback);
      Py_CLEAR(result);
    }
  }
  Py_DECREF(token);
  return result;
}

int visit(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->called);
  Py_VISIT(cast(self)->before);
  Py_VISIT(cast(self)->after);
  return 0;
}

int clear(PyObject *self) {
  Py_CLEAR(cast(self)->called);
  Py_CLEAR(cast(self)->before);
  Py_CLEAR(cast(self)->after);
  return 0;
}

void destroy(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject *getAttribute(PyObject *self, PyObject *name) {
  return PyObject_GetAttr(cast(self)->called, name);
}

int setAttribute(PyObject *self, PyObject *name, PyObject *value) {
  return PyObject_SetAttr(cast(self)->called, name, value);
}

PyObject *represent(PyObject *self) {
  return PyObject_Repr(cast(self)->called);
}

/// As an attribute of a class it is a method if `called` is one.
PyObject *bind(PyObject *self, PyObject *object, PyObject *) {
  bool is_method = object && object != Py_None && Py_TYPE(cast(self)->called)->tp_descr_get;
  return is_method ? PyMethod_New(self, object) : Py_NewRef(self);
}

template <typename Function> void *slot(Function *function) {
  return reinterpret_cast<void *>(function);
}

} // namespace

bool makeWatchedCallType() {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(WatchedCall, vectorcall), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  PyType_Slot slots[] = {{Py_tp_members, members},
                         {Py_tp_call, slot(PyVectorcall_Call)},
                         {Py_tp_traverse, slot(visit)},
                         {Py_tp_clear, slot(clear)},
                         {Py_tp_dealloc, slot(destroy)},
                         {Py_tp_getattro, slot(getAttribute)},
                         {Py_tp_setattro, slot(setAttribute)},
                         {Py_tp_repr, slot(represent)},
                         {Py_tp_descr_get, slot(bind)},
                         {0, nullptr}};
  PyType_Spec spec = {"deepcontext._native.WatchedCall", sizeof(WatchedCall), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                          Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      slots};
  g_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
  return g_type;
}

PyObject *watchedCall(PyObject *called, PyObject *before, PyObject *after) {
  auto *watched = reinterpret_cast<WatchedCall *>(g_type->tp_alloc(g_type, 0));
  if (watched) {
    watched->vectorcall = onCall;
    watched->called = Py_NewRef(called);
    watched->before = Py_XNewRef(before);
    watched->after = Py_XNewRef(after);
  }
  return reinterpret_cast<PyObject *>(watched);
}

} // namespace deepcontext
