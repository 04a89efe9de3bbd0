#pragma once
// Finds the Python objects that hold many tensors, and what holds these objects. GIL held.
//
// Nothing here runs Python code: objects are visited as the garbage collector visits them, which is
// safe for objects that are being filled. A search ends early at its deadline.
#include <Python.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace deepcontext {

/// A visited object and how many tensors it refers to, alone and through small objects inside it.
struct Holder {
  PyObject *object; // owned
  size_t tensors;
};

/// A variable of a running function that refers to an object.
struct HoldingVariable {
  size_t target;            // position in the question
  const PyCodeObject *code; // borrowed: of a function that runs
  PyObject *name;           // owned
};

/// A search's time limit and what became of it.
struct SearchLimit {
  double seconds;
  bool is_exceeded = false;
};

/// The lists, dicts, sets, deques, cells and instances with at least `fewest` direct instances of
/// `tensor`, and frames that have ended with at least one; most tensors first, at most `most` of
/// them. A list, dict or instance with fewer tensors counts for what holds it, as any tuple does.
std::vector<Holder> findHolders(PyTypeObject *tensor, size_t fewest, size_t most,
                                SearchLimit *limit);

/// Direct instances of `tensor` that an object refers to, alone and through small objects inside
/// it: every `stride`-th of them, at most `most`, each owned.
std::vector<PyObject *> tensorsIn(PyObject *holder, PyTypeObject *tensor, size_t stride,
                                  size_t most);

/// The objects that refer to these objects: (position in `targets`, referrer), referrers owned. At
/// most `most` for each target. Frames, tuples and the list `targets` itself are left out.
std::vector<std::pair<size_t, PyObject *>> findReferrers(PyObject *targets, size_t most,
                                                         SearchLimit *limit);

/// The local variables of running functions, of all threads, that refer to these objects.
std::vector<HoldingVariable> findVariables(PyObject *targets);

} // namespace deepcontext
