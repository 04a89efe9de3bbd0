#pragma once
// Tensors among the inputs of an operator, and their shapes, through the AOTI C ABI.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "abi/torch.h"
#include "torch/element_types.h"
#include "torch/library.h"
#include "torch/tensor_keys.h"

namespace deepcontext::torch {

/// Shape and element type of a tensor.
struct Form {
  int64_t dimensions = 0;
  int64_t *sizes = nullptr;
  int32_t type = -1;

  /// Of any tensor: unlike the sizes, the question changes nothing.
  bool readType(void *tensor) {
    const Library &library = Library::instance();
    return library.tensor_dim(tensor, &dimensions) == 0 && library.tensor_type(tensor, &type) == 0;
  }
  /// False for a tensor that stands for another, and without a plain shape: sparse, nested.
  bool read(void *tensor) {
    return TensorKeys::instance().isPlain(tensor) && readType(tensor) &&
           Library::instance().tensor_sizes(tensor, &sizes) == 0;
  }
};

constexpr size_t kMostInputs = 64;

/// The tensors among an operator's inputs.
template <typename Visit>
void forEachTensor(const void *record_function, int inputs_offset, Visit visit) {
  auto *values = abi::readAt<abi::IValue *>(record_function, inputs_offset);
  size_t count = abi::readAt<size_t>(record_function, inputs_offset + 8);
  for (size_t i = 0; values && i < std::min(count, kMostInputs); ++i) {
    if (values[i].tag == abi::kTensorTag && values[i].payload) {
      visit(&values[i]);
    }
  }
}

} // namespace deepcontext::torch
