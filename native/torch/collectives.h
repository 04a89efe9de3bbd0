#pragma once
// Numbers the collectives of a process and keeps how long each took, to compare with other ranks.
#include <array>
#include <cstdint>
#include <vector>

#include "core/spin_lock.h"

namespace deepcontext::torch {

/// A collective from its call to its end.
struct Collective {
  uint64_t start_ticks = 0;
  uint64_t duration_ticks = 0;
  uint32_t number = 0; // 0, 1, 2 ... in the order of the calls
  bool is_numbered = false;
  bool overlaps = false; // when it was called, another collective had not ended
};

/// The collectives of a session, in bounded memory (32 kB). Any thread.
///
/// Only operations that no rank leaves before the last rank has come are numbered; not, for
/// example, a broadcast. Gloo opens its scope on a thread of its own, where the work begins. Works
/// begin in the order of the calls, so a scope belongs to the oldest call that has no scope yet.
///
/// Runs of 64 numbers are kept or left out as a whole, by a hash of the run, with which every rank
/// chooses the same runs. A full table halves what is kept.
class Collectives {
public:
  static constexpr uint32_t kMostRows = 1024;

  struct Reading {
    uint64_t called = 0;
    uint64_t ended = 0;
    uint64_t unmatched = 0; // calls and scopes that have no counterpart for certain
    std::vector<Collective> rows;
  };

  static Collectives &instance() {
    static Collectives *const table = new Collectives();
    return *table;
  }
  /// Whether an operator is a call that is numbered.
  static bool isCall(const char *name);
  /// Whether an asynchronous scope is the work of such a call.
  static bool isWork(const char *name);

  /// Forget everything. One thread.
  void clear();
  void call(uint64_t now);
  /// The call whose work begins.
  Collective begin();
  void end(Collective collective, uint64_t now);
  Reading read();

private:
  static constexpr uint32_t kMostPending = 256;

  void keep(const Collective &collective);
  bool isKept(uint32_t number) const;

  SpinLock lock_;
  int process_ = 0; // that cleared the table last
  uint64_t called_ = 0;
  uint64_t begun_ = 0;
  uint64_t ended_ = 0;
  uint64_t unmatched_ = 0;
  std::array<Collective, kMostPending> pending_;
  std::array<Collective, kMostRows> rows_;
  uint32_t row_count_ = 0;
  uint32_t level_ = 0; // a run of numbers is kept with probability 1 / 2^level
};

} // namespace deepcontext::torch
