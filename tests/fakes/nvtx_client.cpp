// A program that marks ranges with NVTX, as XLA does on a GPU. By default it has a rewritten loader
// of NVTX 3; with REAL_NVTX it uses NVIDIA's headers (tests/compat/test_abi_gpu.py).
#ifdef REAL_NVTX
#include <nvtx3/nvToolsExt.h>
#else
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

#include "abi/nvtx.h"
#endif

#define CLIENT_API extern "C" __attribute__((visibility("default")))

#ifdef REAL_NVTX

namespace {
nvtxDomainHandle_t g_domain;
nvtxEventAttributes_t attributesOf(const char *text, bool is_registered) {
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = is_registered ? NVTX_MESSAGE_TYPE_REGISTERED : NVTX_MESSAGE_TYPE_ASCII;
  if (is_registered) {
    attributes.message.registered = nvtxDomainRegisterStringA(g_domain, text);
  } else {
    attributes.message.ascii = text;
  }
  return attributes;
}
} // namespace

CLIENT_API int client_open(const char *domain) {
  g_domain = nvtxDomainCreateA(domain);
  return g_domain != nullptr;
}
CLIENT_API void client_push(const char *text, int is_registered) {
  nvtxEventAttributes_t attributes = attributesOf(text, is_registered != 0);
  nvtxDomainRangePushEx(g_domain, &attributes);
}
CLIENT_API void client_pop() {
  nvtxDomainRangePop(g_domain);
}

#else

namespace {

using namespace deepcontext::abi::nvtx;

constexpr unsigned kPlaces = 16;
FunctionPointer g_functions[kPlaces];
FunctionPointer *g_slots[kPlaces + 1]; // ends with null, as NVIDIA's
void *g_domain;

int functionTable(int module, FunctionPointer ***functions, unsigned *count) {
  if (module != kModuleCore2) {
    return 0;
  }
  for (unsigned i = 1; i < kPlaces; ++i) {
    g_slots[i] = &g_functions[i];
  }
  *functions = g_slots;
  *count = kPlaces;
  return 1;
}

const void *exportTable(uint32_t table) {
  static const CallbacksTable callbacks{sizeof(CallbacksTable), functionTable};
  return table == kCallbacksTable ? &callbacks : nullptr;
}

template <typename Function> Function *function(unsigned place) {
  return reinterpret_cast<Function *>(g_functions[place]);
}

bool load() {
  const char *path = std::getenv("NVTX_INJECTION64_PATH");
  void *library = path ? dlopen(path, RTLD_LAZY) : nullptr;
  auto *initialize =
      library
          ? reinterpret_cast<int (*)(GetExportTable)>(dlsym(library, "InitializeInjectionNvtx2"))
          : nullptr;
  return initialize && initialize(exportTable);
}

} // namespace

CLIENT_API int client_open(const char *domain) {
  static const bool is_loaded = load();
  auto *create = function<void *(const char *)>(kDomainCreateA);
  g_domain = is_loaded && create ? create(domain) : nullptr;
  return g_domain != nullptr;
}
CLIENT_API void client_push(const char *text, int is_registered) {
  auto *push = function<int(void *, const EventAttributes *)>(kDomainRangePushEx);
  auto *intern = function<const void *(void *, const char *)>(kDomainRegisterStringA);
  if (!push || !intern) {
    return; // nobody listens
  }
  EventAttributes attributes{};
  attributes.version = 3;
  attributes.size = sizeof(EventAttributes);
  attributes.message_type = is_registered ? kMessageRegistered : kMessageAscii;
  attributes.message = is_registered ? intern(g_domain, text) : text;
  push(g_domain, &attributes);
}
CLIENT_API void client_pop() {
  if (auto *pop = function<int(void *)>(kDomainRangePop)) {
    pop(g_domain);
  }
}

#endif
