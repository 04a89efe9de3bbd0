#pragma once
// NVIDIA: driver callbacks give the call paths, activity buffers what ran.
#include <atomic>
#include <mutex>
#include <set>
#include <vector>

#include "gpu/buffer_queue.h"
#include "gpu/collector.h"
#include "gpu/cupti/calls.h"
#include "gpu/cupti/device_pool.h"
#include "gpu/cupti/early_flush.h"
#include "gpu/cupti/library.h"
#include "gpu/cupti/moved_nodes.h"
#include "gpu/cupti/stall_sampler.h"
#include "gpu/kernel_names.h"

namespace deepcontext::gpu::cupti {

/// What another tool has meanwhile.
enum class Yield { kNothing, kRecords, kAll };

/// One per process, never destroyed, because CUPTI may call back until the process ends. No lock is
/// held while CUPTI is called, except a `Serial`, which callbacks do not wait for, and the
/// attribution's during GetNextRecord.
class CuptiCollector final : public Collector {
public:
  static CuptiCollector &instance();

  const char *vendor() const override { return "nvidia"; }
  ProbeResult probe(const Libraries &libraries) override;
  std::string start(const Libraries &libraries, const CollectorOptions &options) override;
  std::string flush() override;
  std::string stop() override;
  bool isRunning() const override { return is_running_.load(std::memory_order_acquire); }
  void beforeFork() override;
  void afterFork(bool is_child) override;

  /// Another tool is about to take the records (torch.profiler) or all of CUPTI (Proton), or has
  /// stopped. Counts also before the start. Returns what went wrong, or "".
  std::string setYielded(Yield yielded);
  /// The libcupti that was used last.
  const std::string &libraryPath() const { return library_.path(); }

protected:
  void addFigures(std::map<std::string, uint64_t> &figures) override;

private:
  CuptiCollector() = default;

  // -- start and stop
  std::string startWith(const Libraries &libraries, const CollectorOptions &options,
                        Result *result);
  std::string attach(const Serial &cupti, Result *result);
  std::string subscribe(const Serial &cupti, Result *result);
  std::string subscribeAlone(const Serial &cupti, Result *result);
  std::string subscribeBeside(const Serial &cupti, Result *result);
  std::string enable(const Serial &cupti, Result *result);
  Result enableKind(const Serial &cupti, uint32_t kind);
  void enableCallbacks(const Serial &cupti);
  bool enableGraphCallbacks(const Serial &cupti);
  void startStalls();
  void noteStalls(bool is_final);
  void fetchEarly();
  std::string fetchOld();
  std::string forceFlush();
  std::string awaitOwnCalls();
  void disable();
  void synchronizeContexts();
  void forgetContexts();
  std::string callWithDeadline(const char *what, void (*work)(CuptiCollector &, Result *));

  // -- another tool beside this one
  uint64_t deviceNow();
  std::string checkClock(const Serial &cupti);
  std::string yield();
  std::string regain();
  std::string release(bool was_yielded);
  std::string attachAgain();
  void countTaken();
  std::string registerAgain();
  void takeBackRecords();

  // -- CUPTI's threads and the program's
  static void onCallback(void *user, uint32_t domain, uint32_t id, const void *data);
  static void onBufferRequested(uint8_t **buffer, size_t *bytes, size_t *most_records);
  static void onBufferRequestedV2(uint8_t **buffer, size_t *bytes, size_t *most_records,
                                  void *information);
  static void onBufferCompleted(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                size_t valid_bytes);
  static void onBufferCompletedV2(uint8_t *buffer, size_t bytes, size_t valid_bytes,
                                  void *information);
  void onDriverCall(uint32_t id, const abi::cupti::CallbackData &call);
  void noteLaunch(const CallClass &known, const abi::cupti::CallbackData &call);
  uint32_t noteReplay(const abi::cupti::CallbackData &call);
  void endLaunch(const abi::cupti::CallbackData &call);
  void noteEnd(const CallClass &known, const abi::cupti::CallbackData &call);
  void noteInstantiation(const CallClass &known, const abi::cupti::CallbackData &call);
  void onCapture(int change, const abi::cupti::CallbackData &call);
  void onResource(uint32_t id, const abi::cupti::ResourceData &resource);
  void onGraph(uint32_t id, const abi::cupti::GraphData &graph);
  void onGraphNode(uint32_t id, const abi::cupti::GraphData &graph);
  void followMovedNodes(const void *graph);
  void seeContext(void *context);
  bool isOneDevice(const std::set<void *> &contexts) const;
  void countDropped(void *context, uint32_t stream);
  void askForDropped(void *context, uint32_t stream);
  void takeBack(const FilledBuffer &buffer);

  // -- the draining thread
  void read(const FilledBuffer &buffer);
  void decode(const abi::cupti::Activity &record);
  void decodeKernel(const abi::cupti::Kernel &record);
  uint32_t copyName(const abi::cupti::Memcpy &copy) const;

  Library library_;
  CallTable driver_calls_;
  BufferQueue buffers_;
  DevicePool device_pool_;
  EarlyFlush early_flush_;
  KernelNames names_;
  MovedNodes moved_nodes_;
  std::vector<uint32_t> kinds_; // enabled
  abi::cupti::Subscriber subscriber_ = nullptr;
  bool is_second_family_ = false; // uses the functions of CUPTI that several tools may share
  std::atomic<bool> is_running_{false};
  // Guards start of a yield, flush and stop against each other; waited for without the GIL.
  std::mutex control_mutex_;
  std::atomic<bool> is_yielded_{false};  // another tool has the records
  std::atomic<bool> is_released_{false}; // and the subscription
  uint64_t launches_before_ = 0;         // the other tool took them
  uint64_t answered_before_ = 0;
  uint64_t buffers_before_ = 0; // when the last old launch was looked for
  uint64_t overdue_before_ = 0;
  std::atomic<uint64_t> taken_launches_{0}; // their records went to the other tool
  std::atomic<uint64_t> blinded_runs_{0};   // of a tool that got no records
  std::atomic<uint64_t> regains_{0};
  std::atomic<uint64_t> clocks_set_{0};
  std::atomic<uint64_t> device_graphs_{0}; // that the device may launch
  std::atomic<uint32_t> asking_{0};        // threads that ask CUPTI for dropped records
  std::atomic<void *> last_context_{nullptr};
  std::atomic<uint64_t> contexts_age_{1}; // rises when a context is destroyed
  std::atomic<uint32_t> captures_{0};     // streams capturing a graph
  StallSampler stalls_{library_, attribution_.stalls, captures_};
  std::atomic<bool> sees_graph_nodes_{true};
  std::atomic<uint32_t> refused_kinds_{0}; // a bit for each kind of records that CUPTI refuses
  std::mutex contexts_mutex_;
  std::set<void *> contexts_;
  uint32_t memset_name_ = 0, peer_copy_name_ = 0;
  std::vector<uint32_t> copy_names_; // of each kind, by memory: any, pageable, managed
};

} // namespace deepcontext::gpu::cupti
