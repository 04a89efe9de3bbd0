#include "python/object_search.h"

namespace deepcontext {

namespace {

/// Appends what a predicate accepts to a list.
template <typename Accept> struct Search {
  Accept accept;
  PyObject *found;
  bool has_failed = false;

  void visit(PyObject *object) {
    if (!has_failed && object != found && accept(object)) {
      has_failed = PyList_Append(found, object) != 0;
    }
  }
};

#if PY_VERSION_HEX >= 0x030c0000

template <typename Accept> void visitAll(Search<Accept> &search) {
  PyUnstable_GC_VisitObjects(
      [](PyObject *object, void *argument) {
        auto *search = static_cast<Search<Accept> *>(argument);
        search->visit(object);
        return search->has_failed ? 0 : 1;
      },
      &search);
}

#else

template <typename Accept> void visitAll(Search<Accept> &search) {
  PyObject *gc = PyImport_ImportModule("gc");
  PyObject *all = gc ? PyObject_CallMethod(gc, "get_objects", nullptr) : nullptr;
  search.has_failed = !all;
  for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(all); ++i) {
    search.visit(PyList_GET_ITEM(all, i));
  }
  Py_XDECREF(all);
  Py_XDECREF(gc);
}

#endif

template <typename Accept> PyObject *findObjects(Accept accept) {
  PyObject *found = PyList_New(0);
  if (!found) {
    return nullptr;
  }
  Search<Accept> search{accept, found};
  visitAll(search);
  if (search.has_failed) {
    Py_DECREF(found);
    return nullptr;
  }
  return found;
}

} // namespace

PyObject *objectsAt(const std::unordered_set<uintptr_t> &addresses) {
  return findObjects([&addresses](PyObject *object) {
    return addresses.count(reinterpret_cast<uintptr_t>(object)) > 0;
  });
}

PyObject *objectsOf(const std::unordered_set<const PyTypeObject *> &types) {
  return findObjects([&types](PyObject *object) { return types.count(Py_TYPE(object)) > 0; });
}

} // namespace deepcontext
