#pragma once
// Where the main thread spends the time of slow steps.
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/slow_steps.h"
#include "sampling/context_tree.h"

namespace deepcontext {

/// Sums samples by place until the step ends, because only then it is known whether it was slow.
/// Sampler's thread.
class SlowStepSamples {
public:
  SlowStepSamples();

  /// The thread was found at `place` after `ns` of work, or of waiting for something else than a
  /// processor.
  void add(ContextTree *tree, Node *place, uint64_t ns);

private:
  struct Sum {
    Node *place;
    uint64_t ns;
  };

  uint16_t metric_;
  SlowSteps::Seen seen_;
  uint64_t work_ns_ = 0;        // since then
  std::array<Sum, 256> sums_{}; // more places of one step are left out
  size_t used_ = 0;
};

} // namespace deepcontext
