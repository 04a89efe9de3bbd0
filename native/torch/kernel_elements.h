#pragma once
// How large the kernels of convolutions are.
#include <cstdint>
#include <cstring>

#include "torch/inputs.h"

namespace deepcontext::torch {

/// Elements of a kernel for each pair of channels: 9 for 3 x 3; 0 for another operator.
inline uint64_t kernelElements(const char *name, const void *record_function, int inputs_offset) {
  // Source: convolution(input, weight, ...), native_functions.yaml; the weight is [out, in, ...].
  constexpr size_t kWeight = 1;
  constexpr int64_t kChannels = 2, kMostDimensions = 5;
  if (std::strcmp(name, "aten::convolution") != 0) {
    return 0;
  }
  auto *values = abi::readAt<abi::IValue *>(record_function, inputs_offset);
  Form form;
  if (!values || abi::readAt<size_t>(record_function, inputs_offset + 8) <= kWeight ||
      values[kWeight].tag != abi::kTensorTag || !values[kWeight].payload ||
      !form.read(&values[kWeight]) || form.dimensions <= kChannels ||
      form.dimensions > kMostDimensions) {
    return 0;
  }
  uint64_t elements = 1;
  for (int64_t i = kChannels; i < form.dimensions; ++i) {
    elements *= static_cast<uint64_t>(form.sizes[i]);
  }
  return elements;
}

} // namespace deepcontext::torch
