#pragma once
// Entry points of the libtorch that the program has already loaded.
#include <cstdint>
#include <string>

#include "abi/torch.h"

namespace deepcontext::torch {

/// Functions found by name in libtorch_cpu.so.
struct Library {
  uint64_t (*add_global_callback)(abi::RecordFunctionCallback) = nullptr;
  void (*remove_callback)(uint64_t) = nullptr;
  const char *(*name)(const void *) = nullptr;
  bool (*is_async)(const void *) = nullptr;
  uint64_t (*sequence_peek)() = nullptr;
  uint64_t (*current_thread)() = nullptr;
  // AOTI C ABI, for shapes and element types of inputs; may be absent
  int32_t (*tensor_dim)(void *, int64_t *) = nullptr;
  int32_t (*tensor_sizes)(void *, int64_t **) = nullptr;
  int32_t (*tensor_type)(void *, int32_t *) = nullptr;
  int32_t (*tensor_strides)(void *, int64_t **) = nullptr;
  int32_t (*tensor_device)(void *, int32_t *) = nullptr;
  // Unlike `aoti_torch_get_data_ptr`, does not copy a tensor that shares its memory copy-on-write.
  int32_t (*tensor_data)(void *, const void **) = nullptr;
  int32_t (*tensor_storage_size)(void *, int64_t *) = nullptr; // bytes
  int32_t (*tensor_storage_offset)(void *, int64_t *) = nullptr;
  bool (*in_parallel_region)() = nullptr;
  bool keeps_errors = false;

  static const Library &instance();
  /// Find the entry points. False with a reason when torch is not loaded or lacks one.
  static bool load(std::string *reason);
  /// Whether the calling thread works on a part of an operator, for the thread that waits in it.
  bool isInParallelRegion() const { return in_parallel_region && in_parallel_region(); }
  bool hasShapes() const { return tensor_dim && tensor_sizes && tensor_type && keeps_errors; }
  bool hasData() const {
    return hasShapes() && tensor_strides && tensor_device && tensor_data && tensor_storage_size &&
           tensor_storage_offset;
  }
};

} // namespace deepcontext::torch
