#include "core/span_ring.h"

#include <algorithm>

namespace deepcontext {

namespace {

std::atomic<size_t> g_bytes{0}; // of all rings

bool take(size_t bytes) {
  if (g_bytes.fetch_add(bytes) + bytes <= SpanRing::kMostBytes) {
    return true;
  }
  g_bytes.fetch_sub(bytes);
  return false;
}

} // namespace

void SpanRing::giveBack() {
  if (memory_) {
    slots_ = nullptr;
    memory_.reset();
    g_bytes.fetch_sub(kBytes);
  }
}

void SpanRing::abandon() {
  if (memory_) {
    static_cast<void>(memory_.release()); // the thread may have been writing
    slots_ = nullptr;
    g_bytes.fetch_sub(kBytes);
  }
}

void SpanRing::begin(bool is_on) {
  count_.store(0, std::memory_order_relaxed);
  is_refused_ = false;
  if (!is_on) {
    giveBack();
  } else if (!memory_) {
    is_refused_ = !take(kBytes);
    if (!is_refused_) {
      memory_ = std::make_unique<LazyArray<Slot>>(kSpans);
      slots_ = memory_->data();
    }
  }
}

SpanRing::Copy SpanRing::copy(uint64_t begin_ticks, uint64_t end_ticks) const {
  Copy copy;
  uint64_t count = count_.load(std::memory_order_acquire);
  uint64_t oldest = count - std::min(count, kSpans);
  std::vector<uint64_t> numbers; // of the copied spans
  uint64_t before = 0;           // spans in a row that ended before `begin_ticks`
  uint64_t last_read = count;    // the number of the last one that was read
  while (last_read > oldest && before < kDisorder) {
    const Slot &slot = slots_[--last_read & (kSpans - 1)];
    uint64_t place = slot.place.load(std::memory_order_relaxed);
    Span span{slot.begin_ticks.load(std::memory_order_relaxed),
              slot.end_ticks.load(std::memory_order_relaxed),
              static_cast<uint32_t>(place & ((1u << kNodeBits) - 1)), place >> kNodeBits};
    copy.newest_end = std::max(copy.newest_end, span.end_ticks);
    before = span.end_ticks < begin_ticks ? before + 1 : 0;
    if (span.end_ticks > begin_ticks && span.begin_ticks < end_ticks) {
      copy.spans.push_back(span);
      numbers.push_back(last_read);
    }
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  uint64_t written = count_.load(std::memory_order_relaxed);
  // See above: up to this number they may have been overwritten.
  uint64_t valid_from = written < kSpans ? 0 : written - kSpans + 1;
  while (!numbers.empty() && numbers.back() < valid_from) {
    numbers.pop_back();
    copy.spans.pop_back();
  }
  bool has_earlier = before > 0 && last_read + before > valid_from;
  if (valid_from > 0 && !has_earlier) {
    copy.known_from = copy.spans.empty() ? end_ticks : copy.spans.back().end_ticks;
  }
  std::reverse(copy.spans.begin(), copy.spans.end());
  return copy;
}

} // namespace deepcontext
