#pragma once
// Every call of a jitted function becomes a node and a time: a hook in the objects' call slot.
#include <Python.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/thread_tree.h"
#include "jax/attribution.h"

namespace deepcontext::jax {

/// A call of a hooked object that has not returned.
struct ActiveCall {
  ActiveCall *outer;
  PyObject *callable; // borrowed: its caller holds it
  uint32_t function;
  PyObject *const *arguments;
  size_t argument_count;
  PyObject *keywords; // tuple of names or null
  Node *node;         // null for a call inside another one
  bool is_slow;       // it went through Python, and may have only traced
  uint32_t launches;  // programs launched through Python
  bool has_inner;     // another jitted function was called inside
  uint64_t told_in;   // the session of `beginCall`; 0: the hook has it on its stack
};

/// Metrics of dispatch nodes for the tree's writer, not shown in the profile.
struct DispatchMetrics {
  uint16_t not_launched;    // calls that only traced or failed
  uint16_t launched_inside; // launches beyond one a call
};
const DispatchMetrics &dispatchMetrics();

/// Hook one object. GIL held. False with a reason when its type has no call slot, or another tool
/// has replaced it.
bool hook(PyObject *callable, uint32_t function, std::string *reason);
/// Restore the original. GIL held.
void unhook(PyObject *callable);
bool isHooked(PyObject *callable);

/// Set whether slow paths and launches through Python are reported (`markSlow`, `markLaunch`), and
/// a Python predicate that tells whether the program has disabled jit, or null. GIL held.
void setMarks(bool are_told, PyObject *is_jit_disabled);
/// The innermost call of the calling thread is on the slow path: it infers types and traces.
void markSlow();
/// Python launches a program for the innermost call. False when no call is open.
bool markLaunch();
/// The calling thread's innermost call that has not returned, or null.
const ActiveCall *innermostCall();
/// Make `call` the calling thread's innermost call; returns the one before. With null, what runs
/// next is no part of the calls that are open.
ActiveCall *exchangeInnermostCall(ActiveCall *call);
/// Open calls of the calling thread whose functions have the name of the innermost one, innermost
/// first: a jitted function on its slow path, and JAX's internal object through which it launches.
std::vector<const ActiveCall *> openCallsOfFunction();
/// Open or close a call that sys.monitoring reports instead of the hook. GIL held.
void beginCall(PyObject *callable, uint32_t function);
void endCall(PyObject *callable, bool has_failed);
/// Count a call whose start was not seen. GIL held.
void countCall(uint32_t function);

/// Note each call until `closeWindow` returns the notes. GIL held.
void openWindow();
std::vector<Launch> closeWindow();

} // namespace deepcontext::jax
