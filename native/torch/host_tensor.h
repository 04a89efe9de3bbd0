#pragma once
// A tensor on the host whose elements can be read where it lies.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "torch/inputs.h"

namespace deepcontext::torch {

struct HostTensor {
  Form form;
  int64_t *strides = nullptr; // in elements
  const char *data = nullptr;
  int64_t element_bytes = 0;
  int64_t elements = 0; // at least one

  /// False for one of another device, without elements, or whose memory is not there.
  bool read(void *tensor) {
    const Library &library = Library::instance();
    const void *begin = nullptr;
    int64_t storage_bytes = 0, furthest = 0;
    int32_t device = -1;
    if (!library.hasData() || !form.read(tensor) || library.tensor_device(tensor, &device) != 0 ||
        device != 0 || library.tensor_strides(tensor, &strides) != 0 ||
        library.tensor_storage_size(tensor, &storage_bytes) != 0 ||
        library.tensor_storage_offset(tensor, &furthest) != 0) {
      return false;
    }
    element_bytes = elementType(form.type).size_bytes;
    elements = 1;
    for (int64_t i = 0; i < form.dimensions; ++i) {
      elements *= form.sizes[i];
      furthest += (form.sizes[i] - 1) * strides[i];
    }
    // A storage may be smaller than its tensors: sharded programs empty those of other ranks.
    if (element_bytes == 0 || elements <= 0 || furthest < 0 ||
        (furthest + 1) * element_bytes > storage_bytes ||
        library.tensor_data(tensor, &begin) != 0 || !begin) {
      return false;
    }
    data = static_cast<const char *>(begin);
    return true;
  }
  /// Its first bytes, at a distance from the first element.
  uint64_t at(int64_t place) const {
    uint64_t element = 0;
    std::memcpy(&element, data + place * element_bytes,
                static_cast<size_t>(std::min<int64_t>(element_bytes, sizeof element)));
    return element;
  }
};

/// The input of a call at a position; nullptr where it is no tensor, or the call has other inputs.
inline void *tensorAt(const void *record_function, int inputs_offset, size_t count,
                      size_t position) {
  auto *values = abi::readAt<abi::IValue *>(record_function, inputs_offset);
  bool is_there = values && abi::readAt<size_t>(record_function, inputs_offset + 8) == count &&
                  values[position].tag == abi::kTensorTag && values[position].payload;
  return is_there ? &values[position] : nullptr;
}

} // namespace deepcontext::torch
