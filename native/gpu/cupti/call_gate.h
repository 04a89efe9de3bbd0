#pragma once
// Keeps the program's calls of the driver apart from those calls of CUPTI that must not meet one.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace deepcontext::gpu::cupti {

/// A launch takes a lock of the driver and then, where instructions are sampled, one of CUPTI; to
/// start or end sampling, CUPTI takes the two in the other order (seen with CUDA 13.0: the program
/// hung in its launch, the sampling thread in cuptiPCSamplingStart). So sampling is started, ended
/// and read while no other thread is inside a call of the driver. Threads that want to call the
/// driver meanwhile wait, some milliseconds, at most `kPatience`.
class CallGate {
public:
  /// For a new session; calls that began in an earlier one are forgotten.
  void reset() {
    session_.fetch_add(1);
    inside_.store(0);
    is_closed_.store(false);
  }
  /// The calling thread begins a call of the driver, perhaps inside another one.
  void enter() {
    Depth &depth = depthInSession();
    if (depth.calls++ > 0) {
      return;
    }
    auto end = std::chrono::steady_clock::now() + kPatience;
    for (inside_.fetch_add(1); is_closed_.load(); inside_.fetch_add(1)) {
      if (std::chrono::steady_clock::now() > end) {
        break; // better a call of CUPTI that hangs than a program that does
      }
      inside_.fetch_sub(1);
      std::this_thread::sleep_for(kPoll);
    }
  }
  void leave() {
    Depth &depth = depthInSession();
    if (depth.calls > 0 && --depth.calls == 0) {
      inside_.fetch_sub(1);
    }
  }
  /// False where a thread was inside a call all the time; the gate is open then.
  bool close(std::chrono::milliseconds patience) {
    auto end = std::chrono::steady_clock::now() + patience;
    is_closed_.store(true);
    while (inside_.load() > 0) {
      if (std::chrono::steady_clock::now() > end) {
        is_closed_.store(false);
        return false;
      }
      std::this_thread::sleep_for(kPoll);
    }
    return true;
  }
  void open() { is_closed_.store(false); }

private:
  struct Depth {
    uint32_t session;
    uint32_t calls;
  };
  static constexpr std::chrono::microseconds kPoll{20};
  static constexpr std::chrono::seconds kPatience{2};

  Depth &depthInSession() {
    static thread_local Depth depth{0, 0};
    uint32_t session = session_.load(std::memory_order_relaxed);
    if (depth.session != session) {
      depth = {session, 0};
    }
    return depth;
  }

  std::atomic<uint32_t> session_{0};
  std::atomic<int64_t> inside_{0};
  std::atomic<bool> is_closed_{false};
};

} // namespace deepcontext::gpu::cupti
