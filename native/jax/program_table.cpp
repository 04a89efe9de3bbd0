#include "jax/program_table.h"

#include <algorithm>

#include "jax/function_table.h"

namespace deepcontext::jax {

namespace {

constexpr uint64_t kMostPlaceholders = 1000;

/// Whether the program may be that of the run, judged by the names of its operations.
bool hasOperationsOf(const Program &program, const Run &run) {
  if (!program.has_operations) {
    return program.hlo_id == run.program_id;
  }
  return std::all_of(run.operations.begin(), run.operations.end(), [&](const auto &operation) {
    return program.by_name.count(operation.first) > 0;
  });
}

} // namespace

uint32_t ProgramTable::append(Program program, std::string label) {
  auto uid = static_cast<uint32_t>(programs_.size());
  program.uid = uid;
  counts_.bytes += program.sizeBytes();
  by_module_[plainName(program.module)].push_back(uid);
  programs_.push_back({std::make_shared<const Program>(std::move(program)), std::move(label)});
  return uid;
}

uint32_t ProgramTable::add(Program program, const std::vector<uint32_t> &functions,
                           uint64_t signature, std::string label) {
  resolved_.erase({program.hlo_id, program.module});
  ++counts_.programs;
  counts_.without_operations += !program.has_operations;
  counts_.with_loops += program.has_loops;
  uint32_t uid = append(std::move(program), std::move(label));
  for (uint32_t function : functions) {
    by_function_[function].push_back({uid, signature});
    FunctionTable::instance().at(function).program_count.fetch_add(1, std::memory_order_relaxed);
  }
  return uid;
}

std::vector<uint32_t> ProgramTable::candidates(uint32_t function, uint64_t signature) const {
  std::vector<uint32_t> all, same_arguments;
  auto bound = by_function_.find(function);
  if (bound != by_function_.end()) {
    for (const Binding &binding : bound->second) {
      all.push_back(binding.program);
      if (signature != 0 && binding.signature == signature) {
        same_arguments.push_back(binding.program);
      }
    }
  }
  if (!same_arguments.empty()) {
    return same_arguments;
  }
  if (all.empty()) { // compiled ahead of time or before the session: by name
    auto named = by_module_.find("jit" + FunctionTable::instance().at(function).plain_name);
    if (named != by_module_.end()) {
      all = named->second;
    }
  }
  return all;
}

const Program &ProgramTable::placeholder(const Run &run) {
  ++placeholders_;
  Program program;
  program.module = run.module;
  program.hlo_id = run.program_id;
  for (const auto &[name, times] : run.operations) {
    Operation operation;
    operation.name = name;
    operation.primitive = sharedText(name.substr(0, name.find('.')));
    program.by_name.emplace(name, static_cast<uint32_t>(program.operations.size()));
    program.operations.push_back(std::move(operation));
  }
  return *programs_[append(std::move(program), {})].program;
}

/// Stands for all programs past the limit. Without operations, so that none of them is timed.
const Program &ProgramTable::others() {
  if (!others_) {
    Program program;
    program.module = "(other programs)";
    program.hlo_id = -1;
    program.has_operations = false;
    others_ = append(std::move(program), {});
  }
  return *programs_[*others_].program;
}

/// The latest program with the run's number, otherwise the latest with its operations, otherwise
/// null.
const Program *ProgramTable::known(const Run &run) const {
  const Program *found = nullptr;
  auto named = by_module_.find(plainName(run.module));
  if (named == by_module_.end()) {
    return nullptr;
  }
  for (auto uid = named->second.rbegin(); uid != named->second.rend(); ++uid) {
    const Program &program = *programs_[*uid].program;
    if (!hasOperationsOf(program, run)) {
      continue;
    }
    if (program.hlo_id == run.program_id) {
      return &program;
    }
    found = found ? found : &program;
  }
  return found;
}

const Program &ProgramTable::ofRun(const Run &run) {
  auto key = std::make_pair(run.program_id, run.module);
  auto resolved = resolved_.find(key);
  if (resolved != resolved_.end()) {
    return *programs_[resolved->second].program;
  }
  const Program *found = known(run);
  if (!found) {
    uint64_t events = 0;
    for (const auto &[name, times] : run.operations) {
      events += times.count;
    }
    unknown_operations_ += events;
    if (placeholders_ == kMostPlaceholders) { // not remembered: there is no end of such programs
      untimed_operations_ += events;
      return others();
    }
    found = &placeholder(run);
  }
  resolved_.emplace(std::move(key), found->uid);
  return *found;
}

const Operation *ProgramTable::findOperation(int64_t program_id, const std::string &module,
                                             const std::string &name) const {
  auto named = by_module_.find(plainName(module));
  if (named == by_module_.end()) {
    return nullptr;
  }
  const Operation *found = nullptr;
  for (auto uid = named->second.rbegin(); uid != named->second.rend(); ++uid) { // the latest first
    const Program &program = *programs_[*uid].program;
    auto operation = program.by_name.find(name);
    if (operation == program.by_name.end()) {
      continue;
    }
    if (program.hlo_id == program_id) {
      return &program.operations[operation->second];
    }
    found = found ? found : &program.operations[operation->second];
  }
  return found;
}

} // namespace deepcontext::jax
