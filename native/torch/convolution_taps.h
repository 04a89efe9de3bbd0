#pragma once
// How long the kernels of convolutions over one dimension are.
#include <cstdint>
#include <cstring>

#include "torch/inputs.h"

namespace deepcontext::torch {

/// Elements of a kernel for each pair of channels; 0 for another operator, and for convolutions
/// over more dimensions.
inline uint64_t convolutionTaps(const char *name, const void *record_function, int inputs_offset) {
  // Source: convolution(input, weight, ...), native_functions.yaml.
  constexpr size_t kWeight = 1;
  constexpr int64_t kDimensions = 3;
  if (std::strcmp(name, "aten::convolution") != 0) {
    return 0;
  }
  auto *values = abi::readAt<abi::IValue *>(record_function, inputs_offset);
  Form form;
  if (!values || abi::readAt<size_t>(record_function, inputs_offset + 8) <= kWeight ||
      values[kWeight].tag != abi::kTensorTag || !values[kWeight].payload ||
      !form.read(&values[kWeight]) || form.dimensions != kDimensions) {
    return 0;
  }
  return static_cast<uint64_t>(form.sizes[kDimensions - 1]);
}

} // namespace deepcontext::torch
