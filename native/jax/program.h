#pragma once
// One compiled program: what each of its operations is, where in the model it comes from, its cost.
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/frame_kind.h"
#include "jax/hlo_module.h"

namespace deepcontext::jax {

/// A line of the program's source.
struct SourceLine {
  std::string function;
  std::string file;
  uint32_t line = 0;
  bool operator==(const SourceLine &other) const {
    return line == other.line && file == other.file && function == other.function;
  }
};

/// An operation that the compiler fused with others.
struct Member {
  std::string primitive;
  std::string op_name;
  Phase phase = Phase::kNone;
  SourceLine source; // innermost line; no file where the compiler kept none
  uint64_t flops = 0;
};

/// How an operation came to its source lines.
enum class Origin : uint8_t {
  kOwn,      // its own metadata
  kMembers,  // that of an operation it was fused of
  kProducer, // inserted by the compiler: that of the operation whose result it takes
  kConsumer, // inserted by the compiler: that of an operation that takes its result
  kNone,
};

struct Operation {
  std::string name;      // of the instruction: "broadcast_multiply_fusion.9"
  std::string opcode;    // "fusion"
  std::string detail;    // fusion kind or custom call target
  std::string op_name;   // "jit(f)/jvp(mlp)/dot_general"
  std::string primitive; // "dot_general"
  std::string shape;     // of its result
  Phase phase = Phase::kNone;
  Origin origin = Origin::kNone;
  std::vector<SourceLine> lines; // outermost first, from the jitted function down
  std::vector<Member> members;
  uint64_t flops = 0;
  uint64_t bytes = 0;
  std::vector<uint32_t> nested; // operations of the computations it runs (while, call, conditional)

  bool isInserted() const { return origin != Origin::kOwn && origin != Origin::kMembers; }
};

struct Program {
  uint32_t uid = 0;
  std::string module; // "jit_train_step"
  int64_t hlo_id = 0; // program_id in run-time events, if it was compiled by this process
  std::vector<Operation> operations;
  std::unordered_map<std::string, uint32_t> by_name;
  uint64_t instructions = 0;
  uint64_t argument_bytes = 0;
  uint64_t output_bytes = 0;
  uint64_t aliased_outputs = 0;
};

/// Where the jitted function begins on the stacks in the metadata: what is above was the path to
/// whoever happened to trace it first.
struct TraceCut {
  SourceLine function; // the jitted function; its line is not looked at; may be unknown (no file)
  std::set<std::pair<std::string, std::string>> callers; // (file, function) above the compilation
};

/// What an op_name says about the pass it belongs to.
///
/// Source: jax/_src/interpreters/ad.py and ad_checkpoint.py name the transformations. The last part
/// of a name may be the layout operation "transpose", hence the parenthesis.
Phase phaseOfOpName(std::string_view op_name);

/// Read a serialised HloModuleProto into a table of operations. False when the bytes are not one.
bool buildProgram(std::string_view hlo, const TraceCut &cut, Program *program);

} // namespace deepcontext::jax
