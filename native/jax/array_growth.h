#pragma once
// What JAX's arrays held at the ends of steps, by the call that made them: which calls' arrays only
// become more.
#include <cstdint>
#include <map>

#include "jax/attribution.h"

namespace deepcontext::jax {

/// Growth over the looks at ends of steps. As in `core/allocation_ledger.h` it is counted from the
/// last power of two not above half of them, so that warming up is left out. No lock: the owner's.
class ArrayGrowth {
public:
  /// A step has ended; `bytes` is what each call's arrays hold.
  void look(const std::map<NodeRef, uint64_t> &bytes);

  struct Grown {
    uint64_t bytes = 0; // held at the last look beyond the one that growth is counted from
    uint64_t looks = 0; // of those since, at which more was held than at the one before
  };
  /// The calls whose arrays grew.
  std::map<NodeRef, Grown> grown() const;

  uint64_t looks() const { return looks_; }
  /// Growth is counted from this look; 0 where there were too few.
  uint64_t since() const { return looks_ < 2 ? 0 : last_mark_ / 2; }

private:
  struct Site {
    uint64_t last_bytes = 0, mark_bytes = 0, earlier_mark_bytes = 0;
    uint64_t grown = 0, mark_grown = 0, earlier_mark_grown = 0;
  };
  std::map<NodeRef, Site> sites_;
  uint64_t looks_ = 0;
  uint64_t last_mark_ = 0; // the last look that is a power of two
};

} // namespace deepcontext::jax
