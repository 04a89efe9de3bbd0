#pragma once
// An optimised HLO module as XLA serialises it (HloModuleProto), reduced to what a profile needs.
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "jax/device_groups.h"

namespace deepcontext::jax {

/// Type and size of a value; a tuple has parts instead of dimensions.
struct HloShape {
  uint32_t element_type = 0; // xla.PrimitiveType
  uint32_t element_bits = 0; // as laid out in memory; 0: whole bytes, as wide as the type needs
  std::vector<int64_t> dimensions;
  std::vector<HloShape> parts;

  /// Number of elements, of all parts of a tuple.
  uint64_t elements() const;
  uint64_t sizeBytes() const;
  /// As HLO text has it, without layouts: "f32[8,128]".
  std::string text() const;
};

struct HloInstruction {
  int64_t id = 0;
  std::string name;
  std::string opcode;
  std::string op_name; // OpMetadata.op_name: "jit(f)/jvp(mlp)/dot_general"
  std::string fusion_kind;
  std::string custom_call_target;
  HloShape shape;
  uint32_t stack_frame = 0; // 1-based index into HloModule::frames, 0 for none
  std::vector<int64_t> operands;
  std::vector<int64_t> called;
  // dot: lhs dimensions summed over; convolution: the kernel's output feature dimension
  std::vector<int64_t> lhs_contracting;
  int64_t kernel_output_feature = -1;
  uint64_t trip_count = 0; // of a loop, if XLA knows it
  DeviceGroups groups;     // of a collective
};

struct HloComputation {
  int64_t id = 0;
  int64_t root = 0;
  std::vector<HloInstruction> instructions;
  std::unordered_map<int64_t, size_t> by_id;

  const HloInstruction *find(int64_t instruction) const {
    auto found = by_id.find(instruction);
    return found == by_id.end() ? nullptr : &instructions[found->second];
  }
};

/// One line of Python that was running when an operation was traced.
struct HloFrame {
  uint32_t function = 0; // interned, as is the file
  uint32_t file = 0;
  uint32_t line = 0;
  uint32_t parent = 0; // 1-based, 0 for the outermost
};

struct HloModule {
  std::string name;
  int64_t id = 0;
  int64_t entry = 0;
  uint64_t aliased_outputs = 0; // outputs that share memory with an argument (donation)
  std::vector<HloComputation> computations;
  std::unordered_map<int64_t, size_t> by_id;
  std::vector<HloFrame> frames;

  const HloComputation *find(int64_t computation) const {
    auto found = by_id.find(computation);
    return found == by_id.end() ? nullptr : &computations[found->second];
  }
};

/// Read a serialised HloModuleProto. False when the bytes are not one.
bool readHloModule(std::string_view bytes, HloModule *module);

} // namespace deepcontext::jax
