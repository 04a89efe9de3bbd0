#pragma once
// The scopes of a thread's strands that do not run.
#include <atomic>
#include <cstdint>
#include <vector>

#include "core/address_cache.h"
#include "core/level.h"
#include "core/probe_table.h"

namespace deepcontext {

/// Scopes of waiting tasks and of greenlets, by strand, so that an event costs the same however
/// many wait. Owner thread only; its signal handlers may read unless `isChanging`.
class ParkedLevels {
public:
  static constexpr size_t kMost = 16384;

  bool isEmpty() const { return strands_.size() == 0; }
  bool isChanging() const { return is_changing_.load(std::memory_order_relaxed); }

  /// Put a level aside, which is further out than all those of its strand that are here. False when
  /// there are too many.
  bool park(const Level &level) {
    Change change(*this);
    uint32_t place = free_;
    if (place == kNone) {
      if (entries_.size() == kMost) {
        return false;
      }
      place = static_cast<uint32_t>(entries_.size());
      entries_.emplace_back();
    } else {
      free_ = entries_[place].inner;
    }
    Indexed *strand = strands_.findOrInsert(level.strand.frame, {level.strand.frame, kNone});
    entries_[place] = {level, strand->outermost};
    strand->outermost = place;
    return true;
  }
  /// Whether levels of this strand are here. Those of another one that had the frame's address, and
  /// has ended, are forgotten.
  bool has(const void *frame, const void *code) {
    const Indexed *strand = strands_.find(frame);
    if (strand && entries_[strand->outermost].level.strand.code != code) {
      take(frame, [](const Level &) {});
      return false;
    }
    return strand != nullptr;
  }
  /// Take out the levels of a strand, outermost first.
  template <typename Visit> void take(const void *frame, Visit visit) {
    Change change(*this);
    if (Indexed *strand = strands_.find(frame)) {
      uint32_t place = strand->outermost;
      strands_.erase(strand);
      while (place != kNone) {
        visit(entries_[place].level);
        uint32_t inner = entries_[place].inner;
        entries_[place].inner = free_;
        free_ = place;
        place = inner;
      }
    }
  }
  /// The innermost level of a strand, or null.
  const Level *innermostOf(const void *frame, const void *code) const {
    const Indexed *strand = strands_.find(frame);
    const Level *found = nullptr;
    for (uint32_t place = strand ? strand->outermost : kNone; place != kNone;
         place = entries_[place].inner) {
      found = &entries_[place].level;
    }
    return found && found->strand.code == code ? found : nullptr;
  }
  /// The level of `owner`, or null. Reads all.
  const Level *find(const void *owner) const {
    const Level *found = nullptr;
    strands_.forEach([&](const Indexed &strand) {
      for (uint32_t place = strand.outermost; place != kNone; place = entries_[place].inner) {
        found = entries_[place].level.owner == owner ? &entries_[place].level : found;
      }
    });
    return found;
  }
  void clear() {
    Change change(*this);
    strands_.clear();
    entries_.clear();
    free_ = kNone;
  }

private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Change {
    explicit Change(ParkedLevels &levels) : levels_(levels) { set(true); }
    ~Change() { set(false); }
    void set(bool is_changing) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
      levels_.is_changing_.store(is_changing, std::memory_order_release);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    ParkedLevels &levels_;
  };
  struct Entry {
    Level level;
    uint32_t inner; // of the same strand, or the next free one
  };
  struct Indexed {
    const void *frame = nullptr;
    uint32_t outermost = kNone;
    bool isFree() const { return !frame; }
    bool isOf(const void *other) const { return frame == other; }
    uint64_t hash() const { return hashOf(frame); }
    static uint64_t hashOf(const void *frame) { return hashAddress(frame); }
  };

  std::vector<Entry> entries_;
  uint32_t free_ = kNone;
  ProbeTable<Indexed> strands_{64};
  std::atomic<bool> is_changing_{false};
};

} // namespace deepcontext
