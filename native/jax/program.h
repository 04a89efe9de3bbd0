#pragma once
// One compiled program: its operations, their source lines and costs.
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

/// The interner's copy of a text that many operations share.
std::string_view sharedText(std::string_view text);

/// A source line; texts are interned, because a program has thousands of lines.
struct SourceLine {
  uint32_t function = 0;
  uint32_t file = 0; // an empty text when unknown
  uint32_t line = 0;
  bool operator==(const SourceLine &other) const {
    return line == other.line && file == other.file && function == other.function;
  }
};

/// An operation that the compiler fused with others.
struct Member {
  std::string_view primitive;
  Phase phase = Phase::kNone;
  SourceLine source; // innermost line; no file when the compiler kept none
  uint64_t flops = 0;
};

/// How an operation came to its source lines.
enum class Origin : uint8_t {
  kOwn,      // its own metadata
  kMembers,  // metadata of an operation it was fused of
  kProducer, // inserted by the compiler: metadata of the operation whose result it takes
  kConsumer, // inserted by the compiler: metadata of an operation that takes its result
  kNone,
};

struct Operation {
  std::string name;           // of the instruction: "broadcast_multiply_fusion.9"
  std::string op_name;        // "jit(f)/jvp(mlp)/dot_general"
  std::string_view opcode;    // "fusion"
  std::string_view detail;    // fusion kind or custom call target
  std::string_view primitive; // "dot_general"
  std::string_view shape;     // of its result
  Phase phase = Phase::kNone;
  Origin origin = Origin::kNone;
  std::vector<SourceLine> lines; // outermost first, from the jitted function down
  std::vector<Member> members;
  uint64_t flops = 0;
  uint64_t bytes = 0;
  std::vector<uint32_t> processes; // that exchange data in it, ascending; empty for others
  bool is_exchange_of_unknown = false;
  uint64_t payload_bytes = 0;   // of one device in it
  std::vector<uint32_t> nested; // operations of the computations it runs (while, call, conditional)

  uint64_t runs = 0; // in one launch, on one device; 0: not known, as in a branch

  /// Whether it calls Python: its time is that of the host.
  bool isCallback() const;
  bool isInserted() const { return origin != Origin::kOwn && origin != Origin::kMembers; }
};

struct Program {
  uint32_t uid = 0;
  std::string module; // "jit_train_step"
  int64_t hlo_id = 0; // program_id in run-time events, if it was compiled by this process
  std::vector<Operation> operations;
  std::unordered_map<std::string, uint32_t> by_name;
  uint64_t instructions = 0;
  uint64_t arguments = 0; // arrays that a call passes: the leaves of all arguments
  uint64_t argument_bytes = 0;
  uint64_t output_bytes = 0;
  uint64_t aliased_outputs = 0;
  bool has_loops = false;     // how many operations a run has is not known
  uint64_t devices = 1;       // of this process that a launch runs it on
  bool has_operations = true; // false: compiled after programs had reached their limit

  /// Approximate memory of the description.
  uint64_t sizeBytes() const;
};

/// Where the jitted function begins on the stacks in the metadata; the outer frames are the path of
/// the call that traced it first.
struct TraceCut {
  SourceLine function; // the jitted function; its line is ignored; no file when unknown
  std::set<std::pair<uint32_t, uint32_t>>
      callers; // (file, function) above the compilation, interned
};

/// On which process each device of a program is, by its place in the program's assignment; empty
/// when it is not known.
struct Placement {
  std::vector<uint32_t> processes;
  uint32_t own = 0; // this process
};

/// The phase that an op_name says.
///
/// Source: jax/_src/interpreters/ad.py and ad_checkpoint.py name the transformations. The last part
/// of a name may be the layout operation "transpose", hence the parenthesis.
Phase phaseOfOpName(std::string_view op_name);

/// Read a serialised HloModuleProto into a table of operations, or only into sums without
/// `with_operations`. False when the bytes are not one.
bool buildProgram(std::string_view hlo, const TraceCut &cut, const Placement &placement,
                  bool with_operations, Program *program);

} // namespace deepcontext::jax
