#include "core/steps.h"

#include <algorithm>
#include <linux/futex.h>
#include <mutex>

#include "core/system_call.h"

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
}

void Steps::abandonInChild() {
  lock_.unlock();
}

/// Forget the steps so far. The lock is held.
void Steps::restart(const StepEnd &end) {
  ++epoch_;
  cut_durations_.reset();
  cut_step_ = 1;
  cut_ticks_ = 0;
  copy_ticks_ = 0;
  end_ = end;
  source_.store(end.source, std::memory_order_relaxed);
  count_ = 0;
  steppers_ = {};
  last_ticks_ = 0;
  durations_.reset();
  history_ = {};
  slow_.reset();
}

void Steps::count(const StepEnd &end, uint64_t now, bool is_kept) {
  if (countLocked(end, now, is_kept)) {
    wakeCutter();
  }
}

/// Whether a cut or a copy is due.
bool Steps::countLocked(const StepEnd &end, uint64_t now, bool is_kept) {
  std::lock_guard<SpinLock> guard(lock_);
  if (end.source < end_.source) {
    return false;
  }
  if (end.source > end_.source) {
    restart(end);
  }
  Stepper &own = placeOf(steppers_, [&](const Stepper &each) { return each.thread == end.thread; });
  if (own.thread != end.thread || own.count == 0) {
    own = {0, end.thread, end.node, nullptr, 0};
  }
  if (own.leader != end.node && own.other != end.node) {
    own.other = end.node;
    own.other_ticks = now;
    return false;
  }
  uint64_t before = count_;
  if (own.leader != end.node) {
    add(&own, own.other_ticks, false);
    own.leader = end.node;
  }
  own.other = nullptr;
  add(&own, now, is_kept);
  if (count_ == before) {
    return false;
  }
  end_ = end;
  bool is_due = isCutDue(now);
  return isCopyDue(now) || is_due;
}

bool Steps::isCutDue(uint64_t now) {
  if (!are_cuts_wanted_ || count_ < cut_step_ || now < cut_ticks_) {
    return false;
  }
  cut_step_ = UINT64_MAX; // until the cut asks for the next one
  is_cut_due_.store(true);
  return true;
}

bool Steps::isCopyDue(uint64_t now) {
  if (!are_copies_wanted_ || !is_copy_asked_ || now < copy_ticks_) {
    return false;
  }
  is_copy_asked_ = false;
  is_copy_due_.store(true);
  return true;
}

/// One more step of a thread has ended.
void Steps::add(Stepper *stepper, uint64_t now, bool is_kept) {
  if (++stepper->count <= count_) {
    return;
  }
  ++count_;
  if (last_ticks_ != 0) {
    uint64_t duration = now > last_ticks_ ? now - last_ticks_ : 0;
    durations_.add(duration);
    is_copy_asked_ |= history_.add({count_, now, duration}, is_kept);
    slow_.add({count_, now, duration}, history_);
    cut_durations_.add(duration);
  }
  last_ticks_ = now;
}

void Steps::startCuts() {
  std::lock_guard<SpinLock> guard(lock_);
  are_cuts_wanted_ = true;
  is_cut_due_.store(false);
  cut_step_ = 1;
  cut_ticks_ = 0;
}

void Steps::stopCuts() {
  std::lock_guard<SpinLock> guard(lock_);
  are_cuts_wanted_ = false;
}

void Steps::wantNextCut(const StepsCut &last, uint64_t ticks) {
  std::lock_guard<SpinLock> guard(lock_);
  if (last.epoch == epoch_) {
    cut_step_ = last.count + 1;
    cut_ticks_ = ticks;
  }
}

StepsCut Steps::cut() {
  std::lock_guard<SpinLock> guard(lock_);
  StepsCut cut{epoch_, count_, last_ticks_, cut_durations_.read()};
  cut_durations_.reset();
  return cut;
}

void Steps::wantCopies(bool are_wanted) {
  std::lock_guard<SpinLock> guard(lock_);
  are_copies_wanted_ = are_wanted;
  is_copy_asked_ = false;
  is_copy_due_.store(false);
  copy_ticks_ = 0;
}

void Steps::pauseCopies(uint64_t ticks) {
  std::lock_guard<SpinLock> guard(lock_);
  copy_ticks_ = ticks;
}

void Steps::askForCopy(uint64_t now) {
  bool is_due = false;
  {
    std::lock_guard<SpinLock> guard(lock_);
    is_copy_asked_ = true;
    is_due = isCopyDue(now);
  }
  if (is_due) {
    wakeCutter();
  }
}

void Steps::wakeCutter() {
  wakings_.fetch_add(1);
  systemCall(SYS_futex, &wakings_, FUTEX_WAKE_PRIVATE, 1 << 20);
}

void Steps::passProgram(const StepEnd &end, uint64_t ticks, uint64_t now) {
  if (source() > StepSource::kProgram) {
    return;
  }
  if (const Node *known = program_.load(std::memory_order_relaxed)) {
    if (known == end.node) {
      pass(end, now);
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
    }
    if (is_longest && count_ + 1 >= kProgramIsKnown) {
      program_.store(end.node, std::memory_order_relaxed);
    }
  }
  if (is_longest) {
    pass(end, now);
  }
}

StepHistory Steps::history(uint64_t *epoch) const {
  std::lock_guard<SpinLock> guard(lock_);
  if (epoch) {
    *epoch = epoch_;
  }
  return history_;
}

SlowSteps::Facts Steps::slowSteps() const {
  std::lock_guard<SpinLock> guard(lock_);
  return slow_.facts();
}

void Steps::noteWorkOfSlowStep(uint32_t first, uint32_t last, uint64_t work) {
  std::lock_guard<SpinLock> guard(lock_);
  slow_.noteWork(first, last, work);
}

StepsSeen Steps::read() const {
  std::lock_guard<SpinLock> guard(lock_);
  return {end_, count_, durations_.read()};
}

} // namespace deepcontext
