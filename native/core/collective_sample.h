#pragma once
// Which collectives of a process are kept, in bounded memory: every rank keeps the same ones.
#include <algorithm>
#include <array>
#include <cstdint>

#include "core/stretch.h"

namespace deepcontext {

/// A place where the process was in the stretch before a collective.
struct StretchSample {
  static constexpr uint64_t kNsMask = (uint64_t{1} << 56) - 1; // two years
  Node *node;
  uint64_t ns : 56;
  uint64_t doing : 8; // a Doing
  uint32_t order;     // of the collective
  uint32_t number;    // that decides whether it is kept
};

/// Rows of collectives and samples of the stretches before them. `Row` has a member `number`. Runs
/// of 64 numbers are kept or left out as a whole, by a hash of the run, with which every rank
/// chooses the same runs, and which prefers no period of the program. A full table halves what is
/// kept. Its owner has the lock.
template <typename Row> class CollectiveSample {
public:
  static constexpr uint32_t kMostRows = 1024;
  static constexpr uint32_t kMostSamples = 768;

  void clear() { row_count_ = sample_count_ = level_ = 0; }

  void add(const Row &row) {
    while (isKept(row.number) && row_count_ == kMostRows && level_ < kMostLevels) {
      keepFewer();
    }
    if (row_count_ < kMostRows && isKept(row.number)) {
      rows_[row_count_++] = row;
    }
  }

  void add(uint32_t order, uint32_t number, const Stretch::Parts &parts) {
    while (isKept(number) && !hasRoomFor(parts) && level_ < kMostLevels) {
      keepFewer();
    }
    if (!hasRoomFor(parts) || !isKept(number)) {
      return;
    }
    for (const StretchPart &part : parts) {
      if (part.ns > 0) {
        samples_[sample_count_++] = {part.node, part.ns & StretchSample::kNsMask,
                                     static_cast<uint8_t>(part.doing), order, number};
      }
    }
  }

  /// The row of the collective with this place among all; null where it is not kept. The newest are
  /// looked at first.
  Row *find(uint32_t order) {
    for (uint32_t i = row_count_; i > 0; --i) {
      if (rows_[i - 1].order == order) {
        return &rows_[i - 1];
      }
    }
    return nullptr;
  }

  /// The collective that was added last has another number.
  void renumber(uint32_t order, uint32_t number) {
    for (uint32_t i = sample_count_; i > 0 && samples_[i - 1].order == order; --i) {
      samples_[i - 1].number = number;
    }
  }

  /// Forget the rows for which `is_wrong` returns true.
  template <typename Test> void forgetRows(const Test &is_wrong) {
    auto *end = std::remove_if(rows_.begin(), rows_.begin() + row_count_, is_wrong);
    row_count_ = static_cast<uint32_t>(end - rows_.begin());
  }

  /// Append everything to vectors that have room for the most rows and samples.
  template <typename Rows, typename Samples> void copyTo(Rows *rows, Samples *samples) const {
    rows->assign(rows_.begin(), rows_.begin() + row_count_);
    samples->assign(samples_.begin(), samples_.begin() + sample_count_);
  }

private:
  static constexpr uint32_t kRunBits = 6;
  static constexpr uint32_t kMostLevels = 26; // runs of 64 among 2^32 numbers

  /// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014
  /// (SplitMix64).
  static uint64_t mixed(uint64_t value) {
    value += 0x9E3779B97F4A7C15u;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
  }

  bool isKept(uint32_t number) const {
    return (mixed(number >> kRunBits) & ((1ull << level_) - 1)) == 0;
  }

  bool hasRoomFor(const Stretch::Parts &parts) const {
    return sample_count_ + parts.size() <= kMostSamples;
  }

  void keepFewer() {
    ++level_;
    auto is_left_out = [this](const auto &each) { return !isKept(each.number); };
    forgetRows(is_left_out);
    auto *end = std::remove_if(samples_.begin(), samples_.begin() + sample_count_, is_left_out);
    sample_count_ = static_cast<uint32_t>(end - samples_.begin());
  }

  std::array<Row, kMostRows> rows_;
  uint32_t row_count_ = 0;
  std::array<StretchSample, kMostSamples> samples_;
  uint32_t sample_count_ = 0;
  uint32_t level_ = 0; // a run of numbers is kept with probability 1 / 2^level
};

} // namespace deepcontext
