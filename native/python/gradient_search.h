#pragma once
// Finds the addresses of gradients while no thread creates or destroys gradients. GIL held.
#include <Python.h>

#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

namespace deepcontext {

/// PyTorch's objects that the search needs; borrowed references.
struct GradientQuestion {
  PyTypeObject *tensor;  // torch.Tensor, no subclass
  PyObject *strided;     // torch.strided: the layout with an address
  PyObject *is_deferred; // torch._C._is_cow_tensor: reading such a tensor's address would copy it
  std::unordered_set<const PyCodeObject *>
      backward; // functions that every backward pass is inside of
};

/// The addresses of the gradients of a list of tensors; none while another thread may be changing
/// gradients.
///
/// Reading a gradient while another thread changes it crashes PyTorch 2.13: a backward pass changes
/// gradients and their reference counts without the GIL, and `parameter.grad = None` releases the
/// GIL while the gradient is being destroyed. So this reads only when no thread is inside a
/// backward pass or sets an attribute, by itself, by a call or through `__torch_function__`. No
/// thread can begin either meanwhile, because this runs no Python code, only getters in C, with
/// garbage collection off. It keeps no reference.
std::optional<std::vector<uintptr_t>> gradientAddresses(PyObject *tensors,
                                                        const GradientQuestion &question);

} // namespace deepcontext
