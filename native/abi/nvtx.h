#pragma once
// The part of NVTX's binary interface (version 3, header-only in the programs that use it) that the
// collector uses, declared without NVIDIA's headers. native/abi/check/nvtx_check.cpp compares it
// with the true headers.
//
// A program's copy of NVTX loads the library named by NVTX_INJECTION64_PATH when its first function
// is called, and calls its `InitializeInjectionNvtx2`.
#include <cstddef>
#include <cstdint>

namespace deepcontext::abi::nvtx {

using GetExportTable = const void *(*)(uint32_t table);
using FunctionPointer = void (*)();
enum : uint32_t { kCallbacksTable = 1 };
enum : int { kModuleCore2 = 5 };
/// Places in the table of module CORE2.
enum : unsigned {
  kDomainRangePushEx = 4,
  kDomainRangePop = 5,
  kDomainRegisterStringA = 10,
  kDomainCreateA = 12,
};

struct CallbacksTable {
  size_t size;
  /// `functions[i]` points to the place of function i, or is null. Returns 1 when there is such a
  /// module.
  int (*functionTable)(int module, FunctionPointer ***functions, unsigned *count);
};

enum : int32_t { kMessageAscii = 1, kMessageRegistered = 3 };

/// Attributes of a range.
struct EventAttributes {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t reserved;
  uint64_t payload;
  int32_t message_type;
  const void *message; // text, or the handle of a registered one
};

} // namespace deepcontext::abi::nvtx
