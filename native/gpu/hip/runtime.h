#pragma once
// The program's HIP run time: its devices, and waiting for them.
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/dynlib.h"

namespace deepcontext::gpu {

/// libamdhip64, if the program has loaded it. The profiler does not load it: that would start ROCm.
class HipRuntime {
public:
  void find(const std::string &path);
  /// Wait for the program's work on `devices` (HIP's ordinals), on a new thread, so that no thread
  /// of the program changes its current device. Returns what went wrong, or "".
  std::string synchronize(const std::vector<uint32_t> &devices, double deadline_s);

private:
  DynLib library_;
  int (*set_device_)(int) = nullptr;
  int (*synchronize_)() = nullptr;
};

/// A GPU as the driver lists it.
struct HipGpu {
  uint64_t handle; // the interface's handle
  uint64_t uuid;   // 0 when it has none
};

/// The variables that hide and sort GPUs; "" for those that are not set.
struct HipVisibility {
  std::string rocr;    // ROCR_VISIBLE_DEVICES: ordinals and UUIDs ("GPU-" and 16 hex digits)
  std::string hip;     // HIP_VISIBLE_DEVICES, else CUDA_VISIBLE_DEVICES
  std::string ordinal; // GPU_DEVICE_ORDINAL

  static HipVisibility ofProcess();
};

/// The handles of `gpus` in HIP's order; hidden ones come last. Each variable applies to the list
/// left by the variable before; a list ends at its first entry that names no GPU.
/// Source: https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html
std::vector<uint64_t> hipOrder(const std::vector<HipGpu> &gpus, const HipVisibility &visibility);

} // namespace deepcontext::gpu
