#pragma once
// How many targets of a classification loss are left out (`ignore_index`), in calls on the host.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "torch/host_tensor.h"

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
    void *target = tensorAt(record_function, inputs_offset, kInputs, kTarget);
    if (target) {
      auto *values = abi::readAt<abi::IValue *>(record_function, inputs_offset);
      count(target, reinterpret_cast<int64_t>(values[kIgnoreIndex].payload));
    }
  }

private:
  // Source: nll_loss_forward(self, target, weight, reduction, ignore_index), native_functions.yaml.
  static constexpr size_t kInputs = 5, kTarget = 1, kIgnoreIndex = 4;
  static constexpr int64_t kMostLooks = 4096;

  void count(void *tensor, int64_t ignore_index) {
    HostTensor labels;
    if (!labels.read(tensor) || labels.form.dimensions != 1 ||
        elementType(labels.form.type).name != kInt64) {
      return;
    }
    int64_t step = std::max<int64_t>(1, labels.elements / kMostLooks);
    for (int64_t i = 0; i < labels.elements; i += step) {
      ++targets;
      ignored += static_cast<int64_t>(labels.at(i * labels.strides[0])) == ignore_index;
    }
  }

  static constexpr std::string_view kInt64 = "i64";
};

} // namespace deepcontext::torch
