#pragma once
// How many targets of a classification loss are left out (`ignore_index`), in calls on the host.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "torch/inputs.h"

namespace deepcontext::torch {

/// Counted while the operator that reads the targets begins, on its thread.
struct IgnoredTargets {
  uint64_t targets = 0; // that were looked at
  uint64_t ignored = 0;

  /// Nothing is counted for another operator, another device, or other types.
  void read(const char *name, const void *record_function, int inputs_offset) {
    if (std::strcmp(name, "aten::nll_loss_forward") != 0) {
      return;
    }
    auto *values = abi::readAt<abi::IValue *>(record_function, inputs_offset);
    if (!values || abi::readAt<size_t>(record_function, inputs_offset + 8) != kInputs ||
        values[kTarget].tag != abi::kTensorTag || !values[kTarget].payload) {
      return;
    }
    count(&values[kTarget], reinterpret_cast<int64_t>(values[kIgnoreIndex].payload));
  }

private:
  // Source: nll_loss_forward(self, target, weight, reduction, ignore_index), native_functions.yaml.
  static constexpr size_t kInputs = 5, kTarget = 1, kIgnoreIndex = 4;
  static constexpr int64_t kMostLooks = 4096;

  void count(void *tensor, int64_t ignore_index) {
    const Library &library = Library::instance();
    Form form;
    const void *data = nullptr;
    int64_t *strides = nullptr;
    int32_t device = -1;
    if (!library.tensor_data || !library.tensor_strides || !library.tensor_device ||
        !form.read(tensor) || form.dimensions != 1 || elementType(form.type).name != kInt64 ||
        library.tensor_device(tensor, &device) != 0 || device != 0 ||
        library.tensor_strides(tensor, &strides) != 0 || library.tensor_data(tensor, &data) != 0) {
      return;
    }
    const auto *labels = static_cast<const int64_t *>(data);
    int64_t step = std::max<int64_t>(1, form.sizes[0] / kMostLooks);
    for (int64_t i = 0; labels && i < form.sizes[0]; i += step) {
      ++targets;
      ignored += labels[i * strides[0]] == ignore_index;
    }
  }

  static constexpr std::string_view kInt64 = "i64";
};

} // namespace deepcontext::torch
