#pragma once
// Programs known so far: the programs that a call may run, and the program of a run or a kernel.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jax/program.h"
#include "jax/xspace.h"

namespace deepcontext::jax {

/// An immutable program, and its label among the programs of its function.
struct LabelledProgram {
  std::shared_ptr<const Program> program; // null when there is none
  std::string label;
};

/// Size of the descriptions of programs.
struct ProgramCounts {
  uint64_t programs = 0;
  uint64_t without_operations = 0; // compiled after the limit was reached
  uint64_t with_loops = 0;         // how many operations a run of these has is not known
  uint64_t bytes = 0;
};

/// Has no lock: its owner, `Attribution`, holds one.
class ProgramTable {
public:
  /// Add a program; `functions` are the functions in whose call it was compiled.
  uint32_t add(Program program, const std::vector<uint32_t> &functions, uint64_t signature,
               std::string label);
  /// The program of a run: by its number, or by name and operations for a program that came from
  /// the persistent cache with another number. An unknown program gets a placeholder; past
  /// a limit, all have one.
  const Program &ofRun(const Run &run);
  /// Programs that a call of the function may run.
  std::vector<uint32_t> candidates(uint32_t function, uint64_t signature) const;
  /// An operation, found by the program's number in this process or by the name of the module.
  const Operation *findOperation(int64_t program_id, const std::string &module,
                                 const std::string &name) const;

  size_t size() const { return programs_.size(); }
  const LabelledProgram &operator[](uint32_t uid) const { return programs_[uid]; }
  const ProgramCounts &counts() const { return counts_; }
  /// Operation events of unknown programs.
  uint64_t unknownOperations() const { return unknown_operations_; }
  /// Those of them that are counted only, because too many programs are unknown.
  uint64_t untimedOperations() const { return untimed_operations_; }

private:
  struct Binding {
    uint32_t program;
    uint64_t signature;
  };

  uint32_t append(Program program, std::string label);
  const Program *known(const Run &run) const;
  const Program &placeholder(const Run &run);
  const Program &others();

  std::vector<LabelledProgram> programs_;
  std::unordered_map<std::string, std::vector<uint32_t>> by_module_; // plain name
  std::unordered_map<uint32_t, std::vector<Binding>> by_function_;
  std::map<std::pair<int64_t, std::string>, uint32_t> resolved_; // (program_id, module) of runs
  ProgramCounts counts_;
  uint64_t placeholders_ = 0;
  std::optional<uint32_t> others_;
  uint64_t unknown_operations_ = 0, untimed_operations_ = 0;
};

} // namespace deepcontext::jax
