#include "jax/array_growth.h"

namespace deepcontext::jax {

void ArrayGrowth::look(const std::map<NodeRef, uint64_t> &bytes) {
  ++looks_;
  bool is_mark = (looks_ & (looks_ - 1)) == 0;
  last_mark_ = is_mark ? looks_ : last_mark_;
  for (const auto &[node, held_bytes] : bytes) {
    sites_.try_emplace(node);
  }
  for (auto &[node, site] : sites_) {
    auto held = bytes.find(node);
    uint64_t held_bytes = held == bytes.end() ? 0 : held->second;
    site.grown += held_bytes > site.last_bytes;
    site.last_bytes = held_bytes;
    if (is_mark) {
      site.earlier_mark_bytes = site.mark_bytes;
      site.earlier_mark_grown = site.mark_grown;
      site.mark_bytes = held_bytes;
      site.mark_grown = site.grown;
    }
  }
}

std::map<NodeRef, ArrayGrowth::Grown> ArrayGrowth::grown() const {
  std::map<NodeRef, Grown> found;
  for (const auto &[node, site] : sites_) {
    if (since() > 0 && site.last_bytes > site.earlier_mark_bytes) {
      found[node] = {site.last_bytes - site.earlier_mark_bytes,
                     site.grown - site.earlier_mark_grown};
    }
  }
  return found;
}

} // namespace deepcontext::jax
