#include "jax/hlo_cost.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace deepcontext::jax {

namespace {

constexpr int kMaxFusionDepth = 16; // a damaged module must not exhaust the stack

/// One operation for each element. Transcendental functions, which XLA counts separately, also
/// count as one. Source: xla/service/hlo_cost_analysis.cc, HandleElementwiseOp.
constexpr std::string_view kElementwise[] = {"add",
                                             "subtract",
                                             "multiply",
                                             "divide",
                                             "maximum",
                                             "minimum",
                                             "remainder",
                                             "compare",
                                             "select",
                                             "negate",
                                             "abs",
                                             "power",
                                             "and",
                                             "or",
                                             "xor",
                                             "not",
                                             "sign",
                                             "floor",
                                             "ceil",
                                             "sqrt",
                                             "rsqrt",
                                             "cbrt",
                                             "clamp",
                                             "exponential",
                                             "exponential-minus-one",
                                             "log",
                                             "log-plus-one",
                                             "tanh",
                                             "logistic",
                                             "sine",
                                             "cosine",
                                             "tan",
                                             "erf",
                                             "atan2",
                                             "round-nearest-afz",
                                             "round-nearest-even"};

bool isElementwise(std::string_view opcode) {
  return std::find(std::begin(kElementwise), std::end(kElementwise), opcode) !=
         std::end(kElementwise);
}

const HloShape *operandShape(const HloComputation &computation, const HloInstruction &instruction,
                             size_t position) {
  if (position >= instruction.operands.size()) {
    return nullptr;
  }
  const HloInstruction *operand = computation.find(instruction.operands[position]);
  return operand ? &operand->shape : nullptr;
}

uint64_t dotFlops(const HloComputation &computation, const HloInstruction &dot) {
  const HloShape *left = operandShape(computation, dot, 0);
  uint64_t summed = 1;
  for (int64_t dimension : dot.lhs_contracting) {
    if (left && dimension >= 0 && static_cast<size_t>(dimension) < left->dimensions.size()) {
      summed *= static_cast<uint64_t>(left->dimensions[static_cast<size_t>(dimension)]);
    }
  }
  return 2 * dot.shape.elements() * summed;
}

/// Two operations for each output element and each kernel element that contributes to it. Positions
/// in the padding are counted, too.
uint64_t convolutionFlops(const HloComputation &computation, const HloInstruction &convolution) {
  const HloShape *kernel = operandShape(computation, convolution, 1);
  auto feature = static_cast<size_t>(convolution.kernel_output_feature);
  if (!kernel || convolution.kernel_output_feature < 0 || feature >= kernel->dimensions.size() ||
      kernel->dimensions[feature] <= 0) {
    return 0;
  }
  uint64_t outputs = static_cast<uint64_t>(kernel->dimensions[feature]);
  return 2 * convolution.shape.elements() * (kernel->elements() / outputs);
}

uint64_t flopsOf(const HloModule &module, const HloComputation &computation,
                 const HloInstruction &instruction, FusedFlops *known, int depth) {
  const std::string &opcode = instruction.opcode;
  if (opcode == "dot") {
    return dotFlops(computation, instruction);
  }
  if (opcode == "convolution") {
    return convolutionFlops(computation, instruction);
  }
  if (opcode == "reduce" || opcode == "reduce-window") {
    const HloShape *input = operandShape(computation, instruction, 0);
    return input ? input->elements() : 0;
  }
  if (opcode == "fusion" && depth < kMaxFusionDepth) {
    uint64_t flops = 0;
    for (int64_t called : instruction.called) {
      const HloComputation *body = module.find(called);
      if (body && known->emplace(called, 0).second) { // a damaged module may call itself
        uint64_t of_body = 0;
        for (const HloInstruction &member : body->instructions) {
          of_body += flopsOf(module, *body, member, known, depth + 1);
        }
        (*known)[called] = of_body;
      }
      flops += body ? (*known)[called] : 0;
    }
    return flops;
  }
  return isElementwise(opcode) ? instruction.shape.elements() : 0;
}

} // namespace

HloCost costOf(const HloModule &module, const HloComputation &computation,
               const HloInstruction &instruction, FusedFlops *known) {
  const std::string &opcode = instruction.opcode;
  if (opcode == "while" || opcode == "call" || opcode == "conditional") {
    return {};
  }
  HloCost cost;
  cost.flops = flopsOf(module, computation, instruction, known, 0);
  cost.bytes = instruction.shape.sizeBytes();
  for (size_t i = 0; i < instruction.operands.size(); ++i) {
    if (const HloShape *shape = operandShape(computation, instruction, i)) {
      cost.bytes += shape->sizeBytes();
    }
  }
  return cost;
}

} // namespace deepcontext::jax
