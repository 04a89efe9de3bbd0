#include "gpu/communication.h"

#include <algorithm>
#include <iterator>

#include "core/text.h"

namespace deepcontext::gpu {

namespace {

// Parts of the names of kernels. Sources: NCCL, src/device/generate.py; RCCL, src/device/common.h;
// MSCCL++, src/; vLLM, csrc/custom_all_reduce.cuh; TensorRT-LLM, allReduceFusionKernels.cu;
// NVSHMEM; DeepEP, csrc/kernels.
constexpr std::string_view kParts[] = {
    "ncclDevKernel",    "ncclKernel",  "ncclSymk",  "ncclSymDevKernel",
    "rcclGeneric",      "mscclKernel", "mscclpp",   "cross_device_reduce",
    "allreduce_fusion", "nvshmem",     "deep_ep::",
};

} // namespace

bool isCommunicationKernel(std::string_view name) {
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [name](std::string_view part) { return contains(name, part); });
}

} // namespace deepcontext::gpu
