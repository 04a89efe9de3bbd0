#pragma once
// The HIP run time of the program, for the two of AMD's interfaces: its devices, and waiting for
// them.
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/dynlib.h"

namespace deepcontext::gpu {

/// libamdhip64, if the program has loaded it: loading it here would be the program's first use of
/// ROCm.
class HipRuntime {
public:
  void find(const std::string &path);
  /// Wait for what the program has put on `devices` (HIP's ordinals), on a thread of its own, whose
  /// current device is nobody else's. Returns what went wrong, or "".
  std::string synchronize(const std::vector<uint32_t> &devices, double deadline_s);

private:
  DynLib library_;
  int (*set_device_)(int) = nullptr;
  int (*synchronize_)() = nullptr;
};

/// A GPU as the driver lists it.
struct HipGpu {
  uint64_t handle; // the interface's own name for it
  uint64_t uuid;   // 0 for none
};

/// What the variables that hide and sort GPUs are set to; "" for those that are not.
struct HipVisibility {
  std::string rocr;    // ROCR_VISIBLE_DEVICES: ordinals and UUIDs ("GPU-" and 16 hex digits)
  std::string hip;     // HIP_VISIBLE_DEVICES, else CUDA_VISIBLE_DEVICES
  std::string ordinal; // GPU_DEVICE_ORDINAL

  static HipVisibility ofProcess();
};

/// The handles of `gpus` in HIP's order; those it hides come last. The variables are applied one
/// after the other, each to what the one before has left; a list ends at its first entry that names
/// no GPU.
/// Source: https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html
std::vector<uint64_t> hipOrder(const std::vector<HipGpu> &gpus, const HipVisibility &visibility);

} // namespace deepcontext::gpu
