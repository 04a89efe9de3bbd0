#pragma once
// The device behind the fake CUPTI: who subscribes to it, and the buffers it fills.
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "abi/cupti.h"
#include "device.h"

namespace fake::cupti {

namespace abi = deepcontext::abi::cupti;

/// Bytes of the records of one of CUPTI's releases.
struct Sizes {
  uint32_t version;
  size_t kernel, memcpy, memset;
};

/// The release that the library is at first.
Sizes firstSizes();
/// The newest of the known releases that is not newer than `version`.
Sizes sizesOf(uint32_t version);

constexpr size_t kDevicePoolLimit = 250; // CUPTI's default

/// The context of a device that frameworks share, or a further one of the same device.
inline void *contextOf(uint32_t device, uint32_t number) {
  return reinterpret_cast<void *>(uintptr_t{0x1000} * (1 + device) + 16 * number);
}
inline void *const kContext = contextOf(0, 0);
inline void *currentContext() { return contextOf(fake::t_device, fake::t_context); }
inline uint32_t contextNumber(const Work &work) { return 1 + work.context; }
/// Host memory of the calling thread's next copies; 0: CUPTI does not say.
inline thread_local uint8_t t_memory = 0;

struct Subscription {
  abi::Callback callback = nullptr;
  void *user = nullptr;
  bool is_second_family = false;
};

struct Buffer {
  uint8_t *data = nullptr;
  size_t bytes = 0;
  size_t used = 0;
  size_t most = 0;
  size_t records = 0;
};

struct State {
  fake::Device device;
  std::mutex mutex;
  Sizes sizes = firstSizes();
  std::shared_ptr<Subscription> subscription;
  std::string holder; // another tool
  bool is_holder_sharing = false;
  std::set<uint32_t> kinds;
  std::set<std::pair<uint32_t, uint32_t>> callbacks;
  abi::BufferRequested requested = nullptr;
  abi::BufferCompleted completed = nullptr;
  abi::BufferRequestedV2 requested_v2 = nullptr;
  abi::BufferCompletedV2 completed_v2 = nullptr;
  std::map<std::thread::id, Buffer> buffers; // one a delivering thread
  std::atomic<uint32_t> next_correlation{1};
  std::atomic<uint32_t> calls_inside{0}; // of the driver, on any thread, once the client knows of them
  std::map<uint32_t, uint32_t> capturing; // stream -> graph
  std::map<uint64_t, uint64_t> renumbered; // node's handle -> its id, since it was moved
  std::map<uint32_t, uint32_t> bodies;    // stream that captures a conditional node's body -> body
  std::atomic<uint64_t> broken_captures{0}; // the context was waited for meanwhile
  std::atomic<uint64_t> buffers_out{0};
  std::atomic<uint64_t> most_records{0}; // in a buffer; 0 for as many as fit
  std::atomic<bool> is_incomplete{false}; // each buffer has a record without its times
  abi::BufferRequested replaced_requested = nullptr; // by fake_take_over
  abi::BufferCompleted replaced_completed = nullptr;
  std::atomic<abi::Timestamp> clock{nullptr}; // null: the wall clock
  bool is_holding = false;
  std::vector<Buffer> held; // complete, and not handed back yet
  std::atomic<uint64_t> dropped_told{0}; // to the client
  std::atomic<size_t> device_pool_limit{kDevicePoolLimit};
};

State &state();

// -- locks (cupti_locks.cpp)

/// The driver's lock, which its calls hold for reading from ENTER to EXIT, those without a callback, too.
/// Starting, ending and disabling PC sampling takes it for writing, below CUPTI's own lock. Launches and
/// loading code take CUPTI's lock below the driver's. Who waits for 2 s ends the process: "deadlock".
class DriverLock {
public:
  enum class For { kReading, kWriting };
  explicit DriverLock(For purpose);
  ~DriverLock();
  DriverLock(const DriverLock &) = delete;
  DriverLock &operator=(const DriverLock &) = delete;

private:
  bool is_taken_; // by this object, not by one further out on this thread
};

/// CUPTI's own lock, for a moment, as a launch takes it.
void touchCuptiLock();

/// A function of CUPTI that its headers do not call thread-safe, called by the client. Two at once are a
/// misuse, because they have deadlocked on hardware.
class ClientCall {
public:
  ClientCall();
  ~ClientCall();
  ClientCall(const ClientCall &) = delete;
  ClientCall &operator=(const ClientCall &) = delete;
  /// From now on with CUPTI's own lock.
  void lock();

private:
  bool is_outermost_;
  bool is_locked_ = false;
};
uint64_t concurrentClientCalls();
void resetLocks();

#define FAIL_IF_ASKED(function)                                                                    \
  do {                                                                                             \
    if (int code = fake::cupti::state().device.fault(function)) {                                  \
      return code;                                                                                 \
    }                                                                                              \
  } while (0)

// -- callbacks (cupti_callbacks.cpp)

// Ids as libcupti 12.9 and 13.0 give them.
constexpr uint32_t kLaunchKernel = 307, kGraphLaunch = 514, kMemset = 220, kCtxSynchronize = 17;
constexpr uint32_t kBeginCapture = 539, kEndCapture = 497, kKernelGetFunction = 683;
constexpr uint32_t kCtxCreate = 757, kCtxDestroy = 322;

/// The name that CUPTI has for a driver function's callback, or null.
const char *nameOfCall(uint32_t id);
/// The other way round; 0 for a name that is not known.
uint32_t idOfCall(const std::string &name);
/// The driver function of the calling thread's next launches.
inline thread_local uint32_t t_launch_function = kLaunchKernel;
/// The subscriber, if it wants this callback.
std::shared_ptr<Subscription> listener(uint32_t domain, uint32_t id);

/// An API call of the program, from its beginning to its end.
class Call {
public:
  uint32_t id;
  uint32_t correlation;
  uint64_t slot = 0; // the client's own, from enter to exit
  int result = 0;    // what the driver's function returns
  const void *parameters;

  explicit Call(uint32_t id, const void *parameters = nullptr, bool is_locked = true);
  ~Call();
  void tell(uint32_t site);
  /// What the function does begins.
  void lock();

private:
  std::optional<DriverLock> lock_;
};

/// The current context was created, or is about to be destroyed.
void tellOfContext(uint32_t id);
/// A graph was created or destroyed, or an executable one was made from `graph`.
void tellGraph(uint32_t id, uint32_t graph, uint32_t executable = 0);
void tellGraphNode(uint32_t id, uint32_t graph, uint64_t node, uint64_t original, uint32_t type = 0);
/// A node is announced, with its type, and created.
void tellNewNode(uint32_t graph, uint64_t node, uint32_t type);

// -- graphs (cupti_graphs.cpp)

/// Make a node of a kernel of `ns` if its stream captures; false if it does not.
bool becomesNode(Work work, uint64_t ns);

// -- torch.profiler beside the tool (cupti_profiler.cpp)

void resetProfiler();
/// "profiler_records" or "profiler_unknown_buffers".
uint64_t profilerCount(const std::string &what);

// -- records and their buffers (cupti_records.cpp)

/// The clock that Kineto registers: raw ticks of the processor.
constexpr uint64_t kTicksPerNs = 3;
uint64_t ticksOfProfiler();
/// CUPTI's clock now, and what it was or will be at a time of the device.
uint64_t timestamp();
uint64_t timestampOf(uint64_t device_ns);
uint8_t copyKind(const char *direction);
size_t sizeOf(uint32_t kind);
/// Hand a buffer back to the client, or keep it while a test wants that.
void complete(const Buffer &buffer);
/// The delivering thread's buffer, out of the shared map, so that a flush cannot hand it over too.
Buffer checkOut();
void checkIn(const Buffer &buffer);
bool emit(Buffer *buffer, const std::vector<uint8_t> &record);
/// Write records of finished work.
void deliver(const std::vector<Work> &works);

} // namespace fake::cupti
