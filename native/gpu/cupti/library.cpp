#include "gpu/cupti/library.h"

#include <cstring>

namespace deepcontext::gpu::cupti {

namespace {

struct KnownError {
  Result result;
  const char *name;
  const char *advice;
};

constexpr KnownError kErrors[] = {
    {abi::cupti::kInvalidParameter, "CUPTI_ERROR_INVALID_PARAMETER", ""},
    {abi::cupti::kOutOfMemory, "CUPTI_ERROR_OUT_OF_MEMORY",
     "the device's buffer for samples was full, also after sampling was enabled again"},
    {abi::cupti::kNotCompatible, "CUPTI_ERROR_NOT_COMPATIBLE",
     "another tool in this process uses the other family of CUPTI's activity functions; run one "
     "tool at a time"},
    {abi::cupti::kNotInitialized, "CUPTI_ERROR_NOT_INITIALIZED",
     "CUPTI could not reach the driver; check that nvidia-smi lists a GPU in this environment"},
    {abi::cupti::kInvalidKind, "CUPTI_ERROR_INVALID_KIND", ""},
    {abi::cupti::kHardwareBusy, "CUPTI_ERROR_HARDWARE_BUSY",
     "another process has the GPU's counters: stop ncu and other profilers; where DCGM watches "
     "them, run 'dcgmi profile --pause' meanwhile"},
    {abi::cupti::kNotSupported, "CUPTI_ERROR_NOT_SUPPORTED",
     "this driver or GPU does not offer it"},
    {abi::cupti::kVirtualizedDeviceNotSupported, "CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED",
     "profiling is not offered on this virtual GPU; ask the host's administrator to enable it"},
    {abi::cupti::kInsufficientPrivileges, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
     "the driver lets only administrators profile; load the nvidia module with "
     "NVreg_RestrictProfilingToAdminUsers=0, or run as root (in a container: with "
     "--cap-add=SYS_ADMIN)"},
    {abi::cupti::kMultipleSubscribers, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
     "another tool holds CUPTI in this process (nsys, ncu, torch.profiler, jax.profiler, Triton's "
     "Proton); run one tool at a time"},
    {abi::cupti::kVirtualizedDeviceInsufficientPrivileges,
     "CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES",
     "profiling is switched off for this virtual machine; ask the host's administrator"},
    {abi::cupti::kConfidentialComputing, "CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED",
     "profiling is not possible while the GPU is in confidential computing mode"},
    {abi::cupti::kMigDevice, "CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED",
     "this CUPTI does not offer it on a partition of a GPU (MIG); give the program a whole GPU"},
    {abi::cupti::kWslDevice, "CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED",
     "CUPTI does not offer it under the Windows Subsystem for Linux"},
    {abi::cupti::kUnknown, "CUPTI_ERROR_UNKNOWN",
     "often: no usable driver for this CUPTI; check that nvidia-smi lists a GPU in this "
     "environment and that its CUDA version is not older than CUPTI's"},
};

const KnownError *find(Result result) {
  for (const KnownError &error : kErrors) {
    if (error.result == result) {
      return &error;
    }
  }
  return nullptr;
}

} // namespace

std::string nameOf(Result result) {
  const KnownError *known = find(result);
  std::string number = std::to_string(result);
  return known ? std::string(known->name) + " (" + number + ")" : "CUPTI error " + number;
}

std::string adviceOn(Result result) {
  const KnownError *known = find(result);
  return known ? known->advice : "";
}

std::string explain(const char *what, Result result) {
  std::string advice = adviceOn(result);
  return std::string(what) + " failed with " + nameOf(result) +
         (advice.empty() ? "" : ": " + advice);
}

std::string releaseOf(uint32_t version) {
  if (version >= 10000) {
    return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100);
  }
  return "12 or older (API " + std::to_string(version) + ")";
}

std::string Library::load(const std::string &cupti_path, const std::string &driver_path) {
  // A late callback of an earlier session may still be reading: write only what changed.
  if (cupti_path_.empty() || cupti_path != cupti_path_ || driver_path != driver_path_) {
    std::string reason = bind(cupti_path, driver_path);
    if (!reason.empty()) {
      return reason;
    }
  }
  uint32_t found = 0;
  Result result = GetVersion(&found);
  if (result != abi::cupti::kSuccess) {
    return explain("cuptiGetVersion", result);
  }
  if (found != version) {
    version = found;
  }
  return "";
}

std::string Library::bind(const std::string &cupti_path, const std::string &driver_path) {
  cupti_path_.clear();
  std::string why;
  if (!driver_.open(driver_path, &why)) {
    return "no NVIDIA driver: '" + driver_path + "' cannot be loaded (" + why +
           "); check that nvidia-smi works in this environment";
  }
  if (!cupti_.open(cupti_path, &why)) {
    return "CUPTI cannot be loaded from '" + cupti_path + "': " + why;
  }
  std::string missing;
  if (!bindRequired(&missing)) {
    return "'" + cupti_path + "' cannot be used as CUPTI: it lacks " + missing +
           "; CUDA 11.1 or newer is needed";
  }
  bindOptional();
  cupti_path_ = cupti_path;
  driver_path_ = driver_path;
  return "";
}

bool Library::bindRequired(std::string *missing) {
#define BIND(place, name)                                                                          \
  if (!cupti_.bind(&place name, "cupti" #name)) {                                                  \
    *missing = "cupti" #name;                                                                      \
    return false;                                                                                  \
  }
  BIND(, GetVersion)
  BIND(, GetCallbackName)
  BIND(, GetTimestamp)
  BIND(, ActivityGetNextRecord)
  BIND(, ActivityGetNumDroppedRecords)
  BIND(serial_., Subscribe)
  BIND(serial_., Unsubscribe)
  BIND(serial_., EnableCallback)
  BIND(serial_., ActivityRegisterCallbacks)
  BIND(serial_., ActivityEnable)
  BIND(serial_., ActivityDisable)
  BIND(serial_., ActivityFlushAll)
#undef BIND
  return true;
}

void Library::bindOptional() {
#define BIND(name) cupti_.bind(&name, "cupti" #name)
  BIND(GetGraphNodeId);
  BIND(GetDeviceId);
  BIND(ActivityGetAttribute);
  BIND(GetTimestamp_v2);
  BIND(ActivityGetNextRecord_v2);
  BIND(ActivityGetNumDroppedRecords_v2);
  BIND(GetCubinCrc);
  BIND(GetSassToSourceCorrelation);
#undef BIND
#define BIND(name) cupti_.bind(&serial_.name, "cupti" #name)
  BIND(ActivitySetAttribute);
  BIND(ActivityRegisterTimestampCallback);
  BIND(Subscribe_v2);
  BIND(ActivityRegisterCallbacks_v2);
  BIND(ActivityEnable_v2);
  BIND(ActivityDisable_v2);
  BIND(PCSamplingEnable);
  BIND(PCSamplingDisable);
  BIND(PCSamplingStart);
  BIND(PCSamplingStop);
  BIND(PCSamplingGetData);
  BIND(PCSamplingSetConfigurationAttribute);
  BIND(PCSamplingGetNumStallReasons);
  BIND(PCSamplingGetStallReasons);
#undef BIND
  driver_.bind(&CtxPushCurrent, "cuCtxPushCurrent_v2");
  driver_.bind(&CtxPopCurrent, "cuCtxPopCurrent_v2");
  driver_.bind(&CtxSynchronize, "cuCtxSynchronize");
  driver_.bind(&DriverGetVersion, "cuDriverGetVersion");
}

} // namespace deepcontext::gpu::cupti
