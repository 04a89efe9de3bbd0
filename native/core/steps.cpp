#include "core/steps.h"

#include <algorithm>
#include <mutex>

#include "core/thread.h"

namespace deepcontext {

namespace {

/// The place of `is_own`, or else the one with the least count, whose owner is forgotten.
template <typename Places, typename IsOwn>
typename Places::value_type &placeOf(Places &places, IsOwn is_own) {
  auto found = std::find_if(places.begin(), places.end(), is_own);
  if (found != places.end()) {
    return *found;
  }
  return *std::min_element(places.begin(), places.end(), [](const auto &left, const auto &right) {
    return left.count < right.count;
  });
}

} // namespace

void Steps::begin() {
  std::lock_guard<SpinLock> guard(lock_);
  restart({});
  program_.store(nullptr, std::memory_order_relaxed);
  programs_ = {};
  marks_ = {};
}

void Steps::abandonInChild() {
  lock_.unlock();
}

/// Forget the steps so far. The lock is held.
void Steps::restart(const StepEnd &end) {
  end_ = end;
  source_.store(end.source, std::memory_order_relaxed);
  count_ = 0;
  most_calls_ = 0;
  last_ticks_ = 0;
  durations_.reset();
}

void Steps::count(const StepEnd &end, uint64_t calls, uint64_t now) {
  std::lock_guard<SpinLock> guard(lock_);
  if (end.source < end_.source) {
    return;
  }
  if (end.source > end_.source) {
    restart(end);
  }
  if (calls <= most_calls_) {
    return;
  }
  end_ = end;
  most_calls_ = calls;
  ++count_;
  if (last_ticks_ != 0) {
    durations_.add(now > last_ticks_ ? now - last_ticks_ : 0);
  }
  last_ticks_ = now;
}

void Steps::mark(uint64_t now) {
  uint64_t calls = 0;
  {
    int thread = kernelThread();
    std::lock_guard<SpinLock> guard(lock_);
    Marks &own = placeOf(marks_, [&](const Marks &each) { return each.thread == thread; });
    if (own.thread != thread) {
      own = {thread, 0};
    }
    calls = ++own.count;
  }
  pass({StepSource::kMark, 0, nullptr}, calls, now);
}

void Steps::passProgram(const StepEnd &end, uint64_t calls, uint64_t ticks, uint64_t now) {
  if (source() > StepSource::kProgram) {
    return;
  }
  if (const Node *known = program_.load(std::memory_order_relaxed)) {
    if (known == end.node) {
      pass(end, calls, now);
    }
    return;
  }
  bool is_longest = false;
  {
    std::lock_guard<SpinLock> guard(lock_);
    Program &own = placeOf(programs_, [&](const Program &each) { return each.node == end.node; });
    if (own.node != end.node) {
      own = {end.node, 0};
    }
    own.count += ticks;
    is_longest = std::all_of(programs_.begin(), programs_.end(),
                             [&](const Program &each) { return each.count <= own.count; });
    if (is_longest && end_.node != end.node && end_.source <= StepSource::kProgram) {
      restart(end);
      most_calls_ = calls - 1;
    }
    if (is_longest && count_ + 1 >= kProgramIsKnown) {
      program_.store(end.node, std::memory_order_relaxed);
    }
  }
  if (is_longest) {
    pass(end, calls, now);
  }
}

StepsSeen Steps::read() const {
  std::lock_guard<SpinLock> guard(lock_);
  return {end_, count_, durations_.read()};
}

} // namespace deepcontext
