#pragma once
// What the program does between two collectives, as samples see it.
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/spin_lock.h"
#include "core/thread_tree.h"

namespace deepcontext {

/// How a sample found a thread.
enum class Doing : uint8_t {
  kOperator,
  kOperatorWaiting, // inside an operator that waits
  kRunning,         // between operators
  kReady,           // for a processor
  kWaiting,         // for something else
  kCollective,      // waiting, while a collective has not ended
};

/// Elapsed time of one place of a stretch. `node` belongs to the sampler's tree.
struct StretchPart {
  Node *node = nullptr;
  uint64_t ns = 0; // 0: no part
  Doing doing = Doing::kRunning;
};

/// The stretch of this process that has begun with its last collective. The sampler adds to it, the
/// thread that calls the next collective takes it. Closed until the first collective, so that other
/// programs pay one load a sample.
class Stretch {
public:
  static constexpr uint32_t kMostParts = 4; // beyond, the ones with the least time are forgotten
  using Parts = std::array<StretchPart, kMostParts>;

  static Stretch &instance() {
    static Stretch *const stretch = new Stretch();
    return *stretch;
  }

  bool isOpen() const { return is_open_.load(std::memory_order_relaxed); }
  /// `ns` elapsed, most likely at `node`. Sampler's thread.
  void add(Node *node, Doing doing, uint64_t ns);
  /// Take the parts and begin the next stretch; open from now on. Any thread.
  Parts take();
  /// Whether a collective is in flight. Any thread.
  void setInFlight(bool is_in_flight) {
    is_in_flight_.store(is_in_flight, std::memory_order_relaxed);
  }
  bool isInFlight() const { return is_in_flight_.load(std::memory_order_relaxed); }
  /// How long threads have waited while a collective was in flight, as samples saw them; rises. Any
  /// thread.
  uint64_t waitedNs() const { return waited_ns_.load(std::memory_order_relaxed); }
  /// Whether the sampler looks at this process at all. Any thread.
  bool isSampled() const { return is_sampled_.load(std::memory_order_relaxed); }
  /// Forget everything and close. `is_forked`: in a forked child, where a holder of the lock does
  /// not exist.
  void clear(bool is_forked);

private:
  SpinLock lock_;
  std::atomic<bool> is_open_{false};
  std::atomic<bool> is_in_flight_{false};
  std::atomic<bool> is_sampled_{false};
  std::atomic<uint64_t> waited_ns_{0}; // the sampler's thread alone adds
  Parts parts_;
};

inline void Stretch::add(Node *node, Doing doing, uint64_t ns) {
  is_sampled_.store(true, std::memory_order_relaxed);
  if (doing == Doing::kCollective) {
    waited_ns_.store(waitedNs() + ns, std::memory_order_relaxed);
  }
  std::lock_guard<SpinLock> guard(lock_);
  StretchPart *least = &parts_[0];
  for (StretchPart &part : parts_) {
    if (part.ns > 0 && part.node == node && part.doing == doing) {
      part.ns += ns;
      return;
    }
    least = part.ns < least->ns ? &part : least;
  }
  if (least->ns < ns) {
    *least = {node, ns, doing};
  }
}

inline Stretch::Parts Stretch::take() {
  std::lock_guard<SpinLock> guard(lock_);
  is_open_.store(true, std::memory_order_relaxed);
  Parts taken = parts_;
  parts_ = {};
  return taken;
}

inline void Stretch::clear(bool is_forked) {
  if (is_forked) {
    lock_.unlock();
  }
  std::lock_guard<SpinLock> guard(lock_);
  is_open_.store(false, std::memory_order_relaxed);
  is_in_flight_.store(false, std::memory_order_relaxed);
  is_sampled_.store(false, std::memory_order_relaxed);
  waited_ns_.store(0, std::memory_order_relaxed);
  parts_ = {};
}

} // namespace deepcontext
