#pragma once
// Graphs whose replays need leave no record.
#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "gpu/correlation.h"

namespace deepcontext::gpu {

/// An executable graph is silent if it was made from a graph that was seen from its creation on and
/// that has no kernel, copy, memset or child graph outside the bodies of conditional nodes. Its
/// replays do not count as launches until a record of one comes; then all of them do, because what
/// runs in such a graph follows from the conditions' default values, which are the same in each
/// replay. Written when graphs are made and destroyed, asked by replaying threads and, for records
/// of such a replay, by the draining thread; the mutex is held for a look-up.
class SilentGraphs {
public:
  void graphCreated(const void *graph);
  void graphDestroyed(const void *graph);
  /// A node is about to be put into the graph.
  void nodeAnnounced(const void *graph, bool leaves_record);
  /// A node was put into the graph; one that was not announced may leave a record.
  void nodeCreated(const void *graph);
  void instantiated(const void *executable, const void *graph);
  void executableDestroyed(const void *executable);

  bool any() const { return count_.load(std::memory_order_relaxed) > 0; }
  /// Note a replay of `executable`, if it is silent. Returns its number, or 0 for a replay that
  /// counts as a launch.
  uint32_t noteReplay(const void *executable);
  /// A replay of the silent graph `number` has left a record.
  void noteRecord(uint32_t number);

  /// Replays that do not count, and those that count after all.
  uint64_t silentReplays() const;
  uint64_t revealedReplays() const { return revealed_.load(std::memory_order_relaxed); }
  void clear();

private:
  struct Graph {
    uint64_t announced = 0; // nodes that leave no record
    uint64_t created = 0;   // nodes
    bool leaves_record = false;
  };
  struct Executable {
    uint64_t replays = 0;
    bool is_revealed = false;
  };
  static constexpr size_t kMostGraphs = 1u << 16; // beyond, graphs are not silent
  mutable std::mutex mutex_;
  std::unordered_map<const void *, Graph> graphs_;
  std::unordered_map<const void *, uint32_t> numbers_; // of executable graphs that are there
  // By number, also of destroyed ones, because their records may still come.
  std::array<Executable, CorrelationTable::kSilentGraphs> executables_;
  std::atomic<uint32_t> count_{0}; // of numbers in use, which begin with 1
  std::atomic<uint64_t> revealed_{0};
};

} // namespace deepcontext::gpu
