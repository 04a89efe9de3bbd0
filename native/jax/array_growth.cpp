#include "jax/array_growth.h"

namespace deepcontext::jax {

void ArrayGrowth::look(const std::map<NodeRef, uint64_t> &bytes) {
  for (const auto &[node, held_bytes] : bytes) {
    sites_[node].pass(looks_, 0); // a new one held nothing before
  }
  ++looks_;
  for (auto &[node, site] : sites_) {
    auto held = bytes.find(node);
    site.pass(looks_, held == bytes.end() ? 0 : held->second);
  }
}

std::map<NodeRef, ArrayGrowth::Grown> ArrayGrowth::grown() const {
  std::map<NodeRef, Grown> found;
  for (const auto &[node, site] : sites_) {
    if (site.isUp()) {
      found[node] = {static_cast<uint64_t>(site.increase()), site.grownSteps()};
    }
  }
  return found;
}

} // namespace deepcontext::jax
