#include "torch/tensor_keys.h"

#include <array>

#include "core/memory_reader.h"

namespace deepcontext::torch {

namespace {

// Of at::TensorImpl, whose last field are the keys: at 168 in torch 2.13, with two words more in
// older ones. So the last word may be behind the tensor.
constexpr size_t kWords = 23;
constexpr size_t kLeastTensors = 3;

using Words = std::array<uint64_t, kWords>;

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
  MemoryReader memory;
  std::vector<Words> contents(known.size());
  for (size_t i = 0; i < known.size(); ++i) {
    const void *tensor = reinterpret_cast<const void *>(known[i].address);
    if (!memory.isUsable() || !memory.read(tensor, contents[i].data(), sizeof(Words))) {
      *reason = "the memory of a tensor cannot be read";
      return false;
    }
  }
  std::vector<int> fitting;
  for (size_t word = 0; word < kWords; ++word) {
    size_t fits = 0;
    for (size_t i = 0; i < known.size(); ++i) {
      fits += contents[i][word] == known[i].keys;
    }
    if (fits == known.size()) {
      fitting.push_back(static_cast<int>(word * sizeof(uint64_t)));
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
