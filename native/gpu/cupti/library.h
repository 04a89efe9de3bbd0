#pragma once
// libcupti and libcuda as loaded libraries.
#include <mutex>
#include <string>
#include <utility>

#include "abi/cupti.h"
#include "gpu/dynlib.h"

namespace deepcontext::gpu::cupti {

using abi::cupti::Result;

/// CUPTI's functions, by their names without the prefix, that its headers do not call thread-safe:
/// two at once have deadlocked (flushing and PC sampling, seen by others with CUDA 13.3). Reached
/// through `Serial` alone. Optional ones may be null.
struct SerialFunctions {
  Result (*Subscribe)(abi::cupti::Subscriber *, abi::cupti::Callback, void *);
  Result (*Unsubscribe)(abi::cupti::Subscriber);
  Result (*EnableCallback)(uint32_t, abi::cupti::Subscriber, uint32_t, uint32_t);
  Result (*ActivityRegisterCallbacks)(abi::cupti::BufferRequested, abi::cupti::BufferCompleted);
  Result (*ActivityEnable)(uint32_t);
  Result (*ActivityDisable)(uint32_t);
  Result (*ActivityFlushAll)(uint32_t);

  // -- since CUDA 11 and later
  Result (*ActivitySetAttribute)(uint32_t, size_t *, void *);
  Result (*ActivityRegisterTimestampCallback)(abi::cupti::Timestamp);
  Result (*Subscribe_v2)(abi::cupti::Subscriber *, abi::cupti::Callback, void *,
                         abi::cupti::SubscriberParameters *);
  Result (*ActivityRegisterCallbacks_v2)(abi::cupti::Subscriber, abi::cupti::BufferRequestedV2,
                                         abi::cupti::BufferCompletedV2);
  Result (*ActivityEnable_v2)(abi::cupti::Subscriber, uint32_t, void *);
  Result (*ActivityDisable_v2)(abi::cupti::Subscriber, uint32_t, void *);

  // -- PC sampling
  Result (*PCSamplingEnable)(abi::cupti::PcContextParameters *);
  Result (*PCSamplingDisable)(abi::cupti::PcContextParameters *);
  Result (*PCSamplingStart)(abi::cupti::PcContextParameters *);
  Result (*PCSamplingStop)(abi::cupti::PcContextParameters *);
  Result (*PCSamplingGetData)(abi::cupti::PcGetDataParameters *);
  Result (*PCSamplingSetConfigurationAttribute)(abi::cupti::PcConfigurationParameters *);
  Result (*PCSamplingGetNumStallReasons)(abi::cupti::PcStallCountParameters *);
  Result (*PCSamplingGetStallReasons)(abi::cupti::PcStallNamesParameters *);

  bool hasPcSampling() const {
    return PCSamplingEnable && PCSamplingDisable && PCSamplingStart && PCSamplingStop &&
           PCSamplingGetData && PCSamplingSetConfigurationAttribute &&
           PCSamplingGetNumStallReasons && PCSamplingGetStallReasons;
  }
};

/// The right to call the functions that may not be called at the same time, for as long as this
/// exists. False where another thread has it.
class Serial {
public:
  Serial(const SerialFunctions &functions, std::unique_lock<std::mutex> lock)
      : functions_(&functions), lock_(std::move(lock)) {}
  explicit operator bool() const { return lock_.owns_lock(); }
  const SerialFunctions *operator->() const { return functions_; }

private:
  const SerialFunctions *functions_;
  std::unique_lock<std::mutex> lock_;
};

/// CUPTI's other functions, and the driver's; optional ones may be null.
class Library {
public:
  /// Load both libraries, the driver first, because without a driver every CUPTI call fails with an
  /// unspecific error. Returns the reason for a failure, or "".
  std::string load(const std::string &cupti_path, const std::string &driver_path);

  const std::string &path() const { return cupti_path_; }

  uint32_t version = 0;

  Result (*GetVersion)(uint32_t *);
  Result (*GetCallbackName)(uint32_t, uint32_t, const char **);
  Result (*GetTimestamp)(uint64_t *);
  Result (*ActivityGetNextRecord)(uint8_t *, size_t, abi::cupti::Activity **);
  Result (*ActivityGetNumDroppedRecords)(void *, uint32_t, size_t *);

  // -- since CUDA 11 and later
  Result (*GetGraphNodeId)(void *, uint64_t *);
  Result (*GetDeviceId)(void *, uint32_t *);
  Result (*ActivityGetAttribute)(uint32_t, size_t *, void *);
  Result (*GetTimestamp_v2)(abi::cupti::Subscriber, uint64_t *);
  Result (*ActivityGetNextRecord_v2)(abi::cupti::Subscriber, uint8_t *, size_t,
                                     abi::cupti::Activity **);
  Result (*ActivityGetNumDroppedRecords_v2)(abi::cupti::Subscriber, void *, uint32_t, size_t *);

  // -- PC sampling, computed on the host
  Result (*GetCubinCrc)(abi::cupti::CubinCrcParameters *);
  Result (*GetSassToSourceCorrelation)(abi::cupti::SourceParameters *);

  // -- driver
  int (*CtxPushCurrent)(void *);
  int (*CtxPopCurrent)(void **);
  int (*CtxSynchronize)();
  int (*DriverGetVersion)(int *);

  bool hasManySubscribers() const {
    return version >= abi::cupti::kVersionManySubscribers && serial_.Subscribe_v2 &&
           serial_.ActivityRegisterCallbacks_v2 && serial_.ActivityEnable_v2 &&
           serial_.ActivityDisable_v2 && ActivityGetNextRecord_v2 &&
           ActivityGetNumDroppedRecords_v2 && GetTimestamp_v2;
  }

  /// Whether the driver, too, lets several tools subscribe.
  bool driverHasManySubscribers() const {
    int driver = 0;
    return DriverGetVersion && DriverGetVersion(&driver) == 0 &&
           driver >= abi::cupti::kDriverManySubscribers;
  }

  /// Wait for the right to call the functions that may not be called at the same time: on threads
  /// of the profiler that have a deadline, and where a session begins.
  Serial serial() const { return {serial_, std::unique_lock<std::mutex>(serial_mutex_)}; }
  /// On the program's threads, which skip their turn.
  Serial trySerial() const {
    return {serial_, std::unique_lock<std::mutex>(serial_mutex_, std::try_to_lock)};
  }

private:
  std::string bind(const std::string &cupti_path, const std::string &driver_path);
  bool bindRequired(std::string *missing);
  void bindOptional();

  SerialFunctions serial_{};
  mutable std::mutex serial_mutex_;
  DynLib cupti_;
  DynLib driver_;
  std::string cupti_path_;
  std::string driver_path_;
};

/// CUPTI's name for a result: "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)". Not by CUPTI's function,
/// which needs a driver.
std::string nameOf(Result result);
/// What a user can do about it; "" when there is nothing.
std::string adviceOn(Result result);
/// "<what> failed with <name>: <advice>".
std::string explain(const char *what, Result result);
/// CUDA release of a CUPTI version: 130001 is "13.0", 28 is "12.9".
std::string releaseOf(uint32_t version);

} // namespace deepcontext::gpu::cupti
