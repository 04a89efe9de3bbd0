#pragma once
// How much of what an embedding looks up is padding, in calls on the host.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "torch/host_tensor.h"

namespace deepcontext::torch {

/// Counted while the operator that reads the indices begins, on its thread.
///
/// Padding is what most rows end with, or begin with, as far as it goes on. Nothing is counted of
/// indices that are all the same, as in a benchmark.
struct Padding {
  uint64_t positions = 0; // that were looked at
  uint64_t padded = 0;
  uint64_t shared = 0; // of these, in columns that are padding in each row

  /// Nothing is counted for another operator, another device, or less than two rows.
  void read(const char *name, const void *record_function, int inputs_offset) {
    if (std::strcmp(name, "aten::embedding") != 0) {
      return;
    }
    void *indices = tensorAt(record_function, inputs_offset, kInputs, kIndices);
    HostTensor tensor;
    if (indices && tensor.read(indices) && tensor.form.dimensions == 2 &&
        tensor.form.sizes[0] > 1 && tensor.form.sizes[1] <= kMostLooks) {
      count(tensor);
    }
  }

private:
  // Source: embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse),
  // native_functions.yaml.
  static constexpr size_t kInputs = 5, kIndices = 1;
  static constexpr int64_t kMostLooks = 16384, kLeastRows = 8;

  void count(const HostTensor &tensor) {
    int64_t all = tensor.form.sizes[0], length = tensor.form.sizes[1];
    int64_t rows = std::min(all, std::max(kMostLooks / length, kLeastRows));
    int64_t step = all / rows;
    int64_t row_stride = step * tensor.strides[0], stride = tensor.strides[1];
    int64_t last = (length - 1) * stride;
    Runs ends = runs(tensor, rows, length, last, row_stride, -stride);
    Runs begins = runs(tensor, rows, length, 0, row_stride, stride);
    const Runs &most = begins.sum > ends.sum ? begins : ends;
    if (most.shortest < length) {
      positions += static_cast<uint64_t>(rows * length);
      padded += static_cast<uint64_t>(most.sum);
      shared += static_cast<uint64_t>(rows * most.shortest);
    }
  }

  struct Runs {
    int64_t sum = 0;
    int64_t shortest = 0;
  };

  /// How often the value that most rows have at one end is repeated from there.
  static Runs runs(const HostTensor &tensor, int64_t rows, int64_t length, int64_t end,
                   int64_t row_stride, int64_t stride) {
    // Boyer and Moore's vote: any value where none has a majority, and the runs are then short.
    uint64_t value = 0;
    int64_t votes = 0;
    for (int64_t row = 0; row < rows; ++row) {
      uint64_t own = tensor.at(end + row * row_stride);
      value = votes == 0 ? own : value;
      votes += own == value ? 1 : -1;
    }
    Runs found{0, length};
    for (int64_t row = 0; row < rows; ++row) {
      int64_t run = 0, place = end + row * row_stride;
      for (; run < length && tensor.at(place) == value; ++run) {
        place += stride;
      }
      found.sum += run;
      found.shortest = std::min(found.shortest, run);
    }
    return found;
  }
};

} // namespace deepcontext::torch
