#pragma once
// Floating point operations and bytes of an HLO operation, from shapes alone.
#include <cstdint>
#include <unordered_map>

#include "jax/hlo_module.h"

namespace deepcontext::jax {

struct HloCost {
  uint64_t flops = 0;
  uint64_t bytes = 0; // operands read and result written, once each
};

/// Floating point operations of the computations of fusions seen so far, by the number of each.
using FusedFlops = std::unordered_map<int64_t, uint64_t>;

/// The cost of one execution of `instruction`. A fusion has the operations of its members and moves
/// only its own operands and result. A while, call or conditional costs nothing; its body does.
/// `known` is kept for all instructions of a module.
HloCost costOf(const HloModule &module, const HloComputation &computation,
               const HloInstruction &instruction, FusedFlops *known);

} // namespace deepcontext::jax
