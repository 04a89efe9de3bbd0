#pragma once
// Which tensors may be asked for their sizes and data: those that PyTorch computes with itself.
//
// A tensor that stands for another (torch.compile and torch.export trace with such tensors, and
// transforms and subclasses run on them) answers through Python or through the tensor behind it.
// While sizes are dynamic, the question alone makes them constants: a function is compiled again
// for each size, and an export fails. The dispatch keys of a tensor say what it is, but no stable
// function reads them.
//
// Proof: the offset is found by tensors whose keys PyTorch itself has told, and must be the only
// one that fits all of them. Guard: without an offset no tensor is asked. Fallback: shapes are off,
// and the profile says why.
#include <cstdint>
#include <string>
#include <vector>

#include "abi/torch.h"

namespace deepcontext::torch {

/// A tensor of `at::TensorImpl` at `address`, and its keys.
struct KnownKeys {
  uint64_t address = 0;
  uint64_t keys = 0;
};

class TensorKeys {
public:
  static TensorKeys &instance();

  /// Find the keys in `at::TensorImpl`; `avoided` are keys of tensors that stand for others. False
  /// with a reason when no place fits all tensors, or several do.
  bool find(const std::vector<KnownKeys> &known, uint64_t avoided, std::string *reason);

  /// Whether to ask a tensor, given as `at::Tensor *`.
  bool isPlain(void *tensor) const {
    const void *implementation = *static_cast<void *const *>(tensor);
    return offset_ >= 0 && implementation &&
           (abi::readAt<uint64_t>(implementation, offset_) & avoided_) == 0;
  }

private:
  int offset_ = -1;
  uint64_t avoided_ = 0;
};

} // namespace deepcontext::torch
