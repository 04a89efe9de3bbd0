#pragma once
// Asks where gradients are, at a moment when nobody makes or drops any. GIL held.
#include <Python.h>

#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

namespace deepcontext {

/// What is PyTorch's of the question; borrowed.
struct GradientQuestion {
  PyTypeObject *tensor; // torch.Tensor: no class of somebody else's
  PyObject *strided;    // torch.strided: a layout that has an address
  PyObject
      *is_deferred; // torch._C._is_cow_tensor: asking for such a tensor's address would copy it
  std::unordered_set<const PyCodeObject *>
      backward; // functions that every backward pass is inside of
};

/// Where the memory of the gradients of a list of tensors begins; none while another thread may be
/// changing gradients.
///
/// PyTorch lets no second thread look at a gradient meanwhile, and the process dies of it (2.13,
/// without any profiler, too): a backward pass changes gradients and their counts of owners without
/// the GIL, and `parameter.grad = None` gives the GIL away while the gradient is half gone. So this
/// asks only when no thread is inside a backward pass or at an attribute, keeps no reference, and
/// lets neither begin: it runs no Python code, only getters in C, and no garbage is collected.
std::optional<std::vector<uintptr_t>> gradientAddresses(PyObject *tensors,
                                                        const GradientQuestion &question);

} // namespace deepcontext
