#pragma once
// What JAX's arrays held at the ends of steps, by the call that made them.
#include <cstdint>
#include <map>

#include "core/growth.h"
#include "jax/attribution.h"

namespace deepcontext::jax {

/// Growth over the checks at ends of steps. Not thread-safe.
class ArrayGrowth {
public:
  /// A step has ended; `bytes` is what each call's arrays hold.
  void look(const std::map<NodeRef, uint64_t> &bytes);

  struct Grown {
    uint64_t bytes = 0; // the increase since the check that growth is counted from
    uint64_t looks = 0; // checks since then at which more was held than at the previous check
  };
  /// Calls whose arrays grew.
  std::map<NodeRef, Grown> grown() const;

  uint32_t looks() const { return looks_; }
  /// Growth is counted from this check; 0 if there were too few checks.
  uint32_t since() const { return Growth::baseStep(looks_); }

private:
  std::map<NodeRef, Growth> sites_;
  uint32_t looks_ = 0;
};

} // namespace deepcontext::jax
