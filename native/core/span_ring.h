#pragma once
// The last events of one thread: written by the thread at each end, copied by anyone.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/lazy_array.h"

namespace deepcontext {

/// One event that has ended.
struct Span {
  uint64_t begin_ticks = 0;
  uint64_t end_ticks = 0;
  uint32_t node = 0; // of the recorder's tree
  uint64_t lane = 0; // 0: the thread; otherwise a stream of a device

  static uint64_t laneOf(uint32_t device, uint32_t stream) {
    return static_cast<uint64_t>(device % kDevices + 1) << 32 | stream;
  }
  static uint32_t deviceOf(uint64_t lane) { return static_cast<uint32_t>(lane >> 32) - 1; }
  static uint32_t streamOf(uint64_t lane) { return static_cast<uint32_t>(lane); }
  static constexpr uint32_t kDevices = 1000;
};

/// A ring of spans. One writer; `copy` from any thread, at any time. No lock, no wait: a writer
/// never sees a reader, and a reader leaves out what the writer may have overwritten meanwhile.
///
/// Why a copy has no torn span: the writer stores the count n of finished spans, then a release
/// fence, then the fields of span n, which replace those of span n - kSpans. A reader that reads
/// any of these fields, and then the count behind an acquire fence, reads at least n. So it leaves
/// out every span up to n - kSpans; of all others it has read the fields as they were published.
class SpanRing {
public:
  static constexpr uint64_t kSpans = 1 << 16; // a power of two
  static constexpr size_t kBytes = kSpans * sizeof(Span);
  /// Of all rings of the process; threads that begin to record later have none.
  static constexpr size_t kMostBytes = 48u << 20;

  SpanRing() = default;
  ~SpanRing() { giveBack(); }
  SpanRing(const SpanRing &) = delete;
  SpanRing &operator=(const SpanRing &) = delete;

  /// Forget all spans; from now on, take spans or do not. Owner only, and no reader may be active.
  void begin(bool is_on);
  /// In a forked child whose thread of this ring does not exist: nobody uses its memory again.
  void abandon();
  /// Memory of the pages that have been written.
  size_t bytes() const {
    return std::min(count_.load(std::memory_order_relaxed), kSpans) * sizeof(Span);
  }
  bool isOn() const { return slots_ != nullptr; }
  /// Whether it takes no spans because all rings together have reached kMostBytes.
  bool isRefused() const { return is_refused_; }

  /// Owner only.
  void add(uint64_t begin_ticks, uint64_t end_ticks, uint32_t node, uint64_t lane = 0) {
    Slot *slots = slots_;
    if (__builtin_expect(slots == nullptr, 0)) {
      return;
    }
    uint64_t count = count_.load(std::memory_order_relaxed);
    Slot &slot = slots[count & (kSpans - 1)];
    std::atomic_thread_fence(std::memory_order_release);
    slot.begin_ticks.store(begin_ticks, std::memory_order_relaxed);
    slot.end_ticks.store(end_ticks, std::memory_order_relaxed);
    slot.place.store(lane << kNodeBits | node, std::memory_order_relaxed);
    count_.store(count + 1, std::memory_order_release);
  }

  /// The spans that overlap [begin_ticks, end_ticks], in the order in which they ended.
  struct Copy {
    std::vector<Span> spans;
    // Spans that ended before this moment are not known; 0: all are known.
    uint64_t known_from = 0;
    uint64_t newest_end = 0; // of any span; 0: none
  };
  Copy copy(uint64_t begin_ticks, uint64_t end_ticks) const;

private:
  static constexpr int kNodeBits = 22;
  struct Slot {
    std::atomic<uint64_t> begin_ticks;
    std::atomic<uint64_t> end_ticks;
    std::atomic<uint64_t> place;
  };
  // Spans that end out of order, such as those that another thread saw end, are at most this far
  // from their place.
  static constexpr uint64_t kDisorder = 256;

  void giveBack();

  std::atomic<uint64_t> count_{0}; // of spans so far
  Slot *slots_ = nullptr;
  std::unique_ptr<LazyArray<Slot>> memory_;
  bool is_refused_ = false;
};

} // namespace deepcontext
