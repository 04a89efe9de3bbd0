#pragma once
// Python frames of a compiled program's metadata, which have name, file and line only.
#include <cstdint>
#include <deque>
#include <map>
#include <tuple>

#include "core/merge.h"
#include "core/mutex.h"

namespace deepcontext::jax {

/// Process-wide table; ids are never reused. Any thread. A node of kind kPython is one of these
/// when `a` has the top bit set; else a code object.
class SourceFrames {
public:
  static constexpr uint64_t kMark = 1ull << 63;

  static SourceFrames &instance() {
    static SourceFrames *const table = new SourceFrames();
    return *table;
  }
  static bool isOne(uint64_t a) { return (a & kMark) != 0; }

  /// The value of `a` for this frame; texts are interned.
  uint64_t add(uint32_t name, uint32_t file, uint32_t line) {
    std::lock_guard<Mutex> lock(mutex_);
    auto [place, is_new] =
        ids_.emplace(std::make_tuple(name, file, line), static_cast<uint64_t>(frames_.size()));
    if (is_new) {
      frames_.push_back({FrameKind::kPython, name, file, line});
    }
    return kMark | place->second;
  }
  FrameRecord frame(uint64_t a) const {
    std::lock_guard<Mutex> lock(mutex_);
    return frames_[a & ~kMark];
  }
  Mutex &forkLock() { return mutex_; }

private:
  mutable Mutex mutex_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint64_t> ids_;
  std::deque<FrameRecord> frames_;
};

} // namespace deepcontext::jax
