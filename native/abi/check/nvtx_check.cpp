// Compile-only: native/abi/nvtx.h against NVIDIA's true headers.
#include <nvtx3/nvToolsExt.h>

#include <type_traits>

#include "abi/nvtx.h"

namespace ours = deepcontext::abi::nvtx;

static_assert(ours::kCallbacksTable == NVTX_ETID_CALLBACKS);
static_assert(ours::kModuleCore2 == NVTX_CB_MODULE_CORE2);
static_assert(ours::kDomainRangePushEx == NVTX_CBID_CORE2_DomainRangePushEx);
static_assert(ours::kDomainRangePop == NVTX_CBID_CORE2_DomainRangePop);
static_assert(ours::kDomainRegisterStringA == NVTX_CBID_CORE2_DomainRegisterStringA);
static_assert(ours::kDomainCreateA == NVTX_CBID_CORE2_DomainCreateA);
static_assert(ours::kMessageAscii == NVTX_MESSAGE_TYPE_ASCII);
static_assert(ours::kMessageRegistered == NVTX_MESSAGE_TYPE_REGISTERED);

static_assert(sizeof(ours::EventAttributes) == sizeof(nvtxEventAttributes_t));
static_assert(offsetof(ours::EventAttributes, size) == offsetof(nvtxEventAttributes_t, size));
static_assert(offsetof(ours::EventAttributes, payload) == offsetof(nvtxEventAttributes_t, payload));
static_assert(offsetof(ours::EventAttributes, message_type) ==
              offsetof(nvtxEventAttributes_t, messageType));
static_assert(offsetof(ours::EventAttributes, message) == offsetof(nvtxEventAttributes_t, message));

static_assert(sizeof(ours::CallbacksTable) == sizeof(NvtxExportTableCallbacks));
static_assert(offsetof(ours::CallbacksTable, functionTable) ==
              offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));
static_assert(std::is_same_v<NvtxFunctionTable, ours::FunctionPointer **>);

int main() {
  return 0;
}
