#pragma once
// What XLA runs on an NVIDIA GPU, from its ranges (NVTX domain "TSL"): which program, which
// operation. What a thread launches inside an operation's range belongs to that operation.
#include <cstdint>
#include <string>
#include <string_view>

namespace deepcontext::jax {

/// A range's text, parsed: "XlaModule:#prefix=jit(f),hlo_module=jit_f,program_id=5#" or
/// "Thunk:#name=add,hlo_op=loop_add_fusion.3,unique_hlo_op_id=7#".
struct DeviceRange {
  enum class Kind : uint8_t { kModule, kOperation, kOther };
  Kind kind = Kind::kOther;
  std::string name; // of the module or the instruction
  int64_t program_id = -1;
};
DeviceRange readDeviceRange(std::string_view text);

/// Begin and end a range on the calling thread. `range` must live as long as the process.
void pushDeviceRange(const DeviceRange &range);
void popDeviceRange();

/// Ranges of operations since the session began, and how many had a known program.
struct DeviceRangeCounts {
  uint64_t operations = 0;
  uint64_t known = 0;
};
DeviceRangeCounts deviceRangeCounts();
void clearDeviceRanges();

/// A copy of NVTX has loaded this library as its injection, for good.
void setInjected();
bool isInjected();

} // namespace deepcontext::jax
