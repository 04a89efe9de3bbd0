#include "torch/library.h"

#include <dlfcn.h>
#include <utility>

namespace deepcontext::torch {

namespace {

Library g_library;

template <typename Function> void find(void *handle, const char *symbol, Function *function) {
  *function = reinterpret_cast<Function>(dlsym(handle, symbol));
}

} // namespace

const Library &Library::instance() {
  return g_library;
}

bool Library::load(std::string *reason) {
  // torch is loaded RTLD_LOCAL, so its symbols are not in the global scope: ask its own handle.
  void *handle = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
  if (!handle) {
    *reason = "libtorch_cpu.so is not loaded in this process";
    return false;
  }
  Library &library = g_library;
  find(handle, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE",
       &library.add_global_callback);
  find(handle, "_ZN2at14removeCallbackEm", &library.remove_callback);
  find(handle, "_ZNK2at14RecordFunction4nameEv", &library.name);
  find(handle, "_ZNK2at14RecordFunction7isAsyncEv", &library.is_async);
  find(handle, "_ZN2at15sequence_number4peekEv", &library.sequence_peek);
  find(handle, "_ZN2at14RecordFunction15currentThreadIdEv", &library.current_thread);
  find(handle, "_ZN2at18in_parallel_regionEv", &library.in_parallel_region);
  find(handle, "aoti_torch_get_dim", &library.tensor_dim);
  find(handle, "aoti_torch_get_sizes", &library.tensor_sizes);
  find(handle, "aoti_torch_get_dtype", &library.tensor_type);
  find(handle, "aoti_torch_get_strides", &library.tensor_strides);
  find(handle, "aoti_torch_get_device_type", &library.tensor_device);
  find(handle, "torch_get_const_data_ptr", &library.tensor_data);
  find(handle, "aoti_torch_get_storage_size", &library.tensor_storage_size);
  find(handle, "aoti_torch_get_storage_offset", &library.tensor_storage_offset);
  // A torch with this symbol keeps errors of the interface for the caller; older ones print a line
  // to standard error for each nested or symbolic tensor.
  library.keeps_errors = dlsym(handle, "torch_exception_get_what") != nullptr;
  const std::pair<const void *, const char *> needed[] = {
      {reinterpret_cast<const void *>(library.add_global_callback), "at::addGlobalCallback"},
      {reinterpret_cast<const void *>(library.remove_callback), "at::removeCallback"},
      {reinterpret_cast<const void *>(library.name), "at::RecordFunction::name"},
      {reinterpret_cast<const void *>(library.is_async), "at::RecordFunction::isAsync"},
      {reinterpret_cast<const void *>(library.sequence_peek), "at::sequence_number::peek"},
      {reinterpret_cast<const void *>(library.current_thread),
       "at::RecordFunction::currentThreadId"},
  };
  for (const auto &[function, symbol] : needed) {
    if (!function) {
      *reason = std::string("this torch does not export ") + symbol;
      return false;
    }
  }
  return true;
}

} // namespace deepcontext::torch
