#pragma once
// Which call made the arrays that are alive: noted as calls return, summed up when asked.
//
// An array is known by the address of its Python object until that dies. Sizes are asked for when
// they are summed up: that takes longer than all the rest. GIL held in every function, except where
// it says otherwise.
#include <Python.h>

#include <cstdint>
#include <map>
#include <string>

#include "core/mutex.h"
#include "jax/array_growth.h"
#include "jax/attribution.h"

namespace deepcontext::jax {

/// Arrays that one call made, as of one moment.
struct HeldArrays {
  uint64_t count = 0;
  uint64_t bytes = 0;
};
using HeldByNode = std::map<NodeRef, HeldArrays>; // `NodeRef::unknown()`: made nobody saw where

/// Note who makes objects of this type from now on. `nodes` is jax's table of the container types
/// that programs registered (a dict by type), or null. False with a reason when the arrays' end
/// cannot be seen.
bool watchArrays(PyObject *type, PyObject *nodes, std::string *reason);
/// Note nothing more, and forget the makers.
void unwatchArrays();
/// The arrays in `result` were made by `node`. `result` may be an array, or any container of some.
void noteMadeSlow(PyObject *result, NodeRef node);
extern PyTypeObject *g_array_type; // null while nothing is watched
inline void noteMade(PyObject *result, uint32_t recorder, uint32_t node) {
  if (g_array_type) {
    noteMadeSlow(result, {recorder, node});
  }
}

/// What a search through one result finds.
struct Search {
  uint64_t arrays = 0;
  uint64_t visits = 0; // objects looked at, arrays included
};
Search searchArrays(PyObject *result);

/// How often a function was given what its own call site had returned before, of the launches that
/// were looked at.
struct FedBack {
  uint64_t launches = 0;
  uint64_t fed_back = 0;
};
/// Look at the arguments of a launch of `function` by `node`.
void noteArguments(uint32_t function, NodeRef node, PyObject *const *arguments, size_t count);
std::map<uint32_t, FedBack> fedBack();

/// Begin a sum over the living arrays. The GIL may be given up until it ends.
void beginWeighing();
/// Add living arrays (a list) to it, of the host or of devices.
void weighArrays(PyObject *arrays, bool is_device);
/// End the sum: it is what is held now, and the peak if it is the largest so far. Returns it. At
/// the end of a step it counts for growth, too.
HeldArrays finishWeighing(bool is_step_end);

/// What the last sum and the largest one found. Any thread.
HeldByNode heldNow();
HeldByNode heldAtPeak();
/// Over the ends of steps that were looked at. Any thread.
ArrayGrowth arrayGrowth(bool is_device);
/// Forget everything.
void clearArrays();
/// What the functions for any thread hold.
Mutex &arraysForkLock();

} // namespace deepcontext::jax
