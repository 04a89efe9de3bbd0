#include "torch/tensor_keys.h"

#include <algorithm>

namespace deepcontext::torch {

namespace {

// Of at::TensorImpl, whose last field are the keys: at 168 in torch 2.13, with two words more in
// older ones. An allocation of 176 bytes has 184 on 64-bit systems.
constexpr int kSize = 184;
constexpr size_t kLeastTensors = 3;

} // namespace

TensorKeys &TensorKeys::instance() {
  static TensorKeys keys;
  return keys;
}

bool TensorKeys::find(const std::vector<KnownKeys> &known, uint64_t avoided, std::string *reason) {
  offset_ = -1;
  if (known.size() < kLeastTensors || avoided == 0) {
    *reason = "too few tensors to find the dispatch keys";
    return false;
  }
  std::vector<int> fitting;
  for (int offset = 0; offset + 8 <= kSize; offset += 8) {
    if (std::all_of(known.begin(), known.end(), [&](const KnownKeys &tensor) {
          return abi::readAt<uint64_t>(reinterpret_cast<const void *>(tensor.address), offset) ==
                 tensor.keys;
        })) {
      fitting.push_back(offset);
    }
  }
  if (fitting.size() != 1) {
    *reason = std::to_string(fitting.size()) + " places in a tensor fit its dispatch keys";
    return false;
  }
  offset_ = fitting.front();
  avoided_ = avoided;
  return true;
}

} // namespace deepcontext::torch
