#pragma once
// Keeps the program's calls of the driver apart from those calls of CUPTI that must not meet one.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace deepcontext::gpu::cupti {

/// A launch takes a lock of the driver and then, where instructions are sampled, one of CUPTI; to
/// start or end sampling, CUPTI takes the two in the other order (seen with CUDA 13.0). So sampling
/// is started, ended and read while no other thread is inside a call of the driver. A thread that
/// begins one meanwhile waits for less than a millisecond. After one wait of `kPatience` no thread
/// waits any more: the gate is open for good, and sampling ends.
///
/// Calls that CUPTI does not tell of pass beside the gate.
class CallGate {
public:
  static constexpr std::chrono::seconds kPatience{1};

  /// For a new session; calls that began in an earlier one are forgotten.
  void reset() {
    session_.fetch_add(1);
    inside_.store(0);
    is_closed_.store(false);
    is_open_for_good_.store(false);
  }
  /// The calling thread begins a call of the driver, perhaps inside another one.
  void enter() {
    Depth &depth = depthInSession();
    if (depth.calls++ > 0) {
      return;
    }
    auto end = std::chrono::steady_clock::now() + kPatience;
    for (inside_.fetch_add(1); is_closed_.load() && !is_open_for_good_.load();
         inside_.fetch_add(1)) {
      if (std::chrono::steady_clock::now() > end) {
        is_open_for_good_.store(true);
        break;
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
  /// Whether the calling thread is outside of all calls.
  bool isOutside() { return depthInSession().calls == 0; }
  void openForGood() { is_open_for_good_.store(true); }
  bool isOpenForGood() const { return is_open_for_good_.load(); }

  /// The gate closed by the calling thread, which may be inside a call itself. False where another
  /// thread was inside a call all the time; the gate is open then. One at a time.
  class Closed {
  public:
    Closed(CallGate &gate, std::chrono::milliseconds patience = std::chrono::milliseconds(0))
        : gate_(gate), is_closed_(gate.close(patience)) {}
    ~Closed() { gate_.is_closed_.store(false); }
    Closed(const Closed &) = delete;
    Closed &operator=(const Closed &) = delete;
    explicit operator bool() const { return is_closed_; }

  private:
    CallGate &gate_;
    bool is_closed_;
  };

private:
  struct Depth {
    uint32_t session;
    uint32_t calls;
  };
  static constexpr std::chrono::microseconds kPoll{20};

  bool close(std::chrono::milliseconds patience) {
    int64_t own = isOutside() ? 0 : 1;
    if (patience.count() == 0 && inside_.load() > own) {
      return false; // without letting others wait
    }
    auto end = std::chrono::steady_clock::now() + patience;
    is_closed_.store(true);
    while (inside_.load() > own) {
      if (std::chrono::steady_clock::now() >= end) {
        is_closed_.store(false);
        return false;
      }
      std::this_thread::sleep_for(kPoll);
    }
    return true;
  }
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
  std::atomic<bool> is_open_for_good_{false};
};

} // namespace deepcontext::gpu::cupti
