#include "jax/program.h"

#include <algorithm>
#include <optional>

#include "core/interner.h"
#include "core/text.h"
#include "jax/collectives.h"
#include "jax/hlo_cost.h"

namespace deepcontext::jax {

namespace {

constexpr int kMaxFrames = 512; // jax keeps 100
constexpr int kMaxSearch = 16;  // producers or consumers looked through for a line
constexpr size_t kMaxMembers = 64;
constexpr int kMaxNesting = 256; // a damaged module must not exhaust the stack

bool runsOthers(const HloInstruction &instruction) {
  const std::string &opcode = instruction.opcode;
  return opcode == "while" || opcode == "call" || opcode == "conditional" ||
         opcode == "async-start";
}

/// Opcodes that do not appear at run time and mean nothing inside a fusion.
bool isBookkeeping(const std::string &opcode) {
  return opcode == "parameter" || opcode == "constant" || opcode == "tuple" ||
         opcode == "get-tuple-element" || opcode == "bitcast";
}

/// Whether the instruction has the name of an operation; a parameter has that of a Python argument.
bool hasOpName(const HloInstruction &instruction) {
  return !instruction.op_name.empty() && instruction.opcode != "parameter" &&
         instruction.opcode != "constant";
}

/// An op_name made of several names joined, "a;b" or "common/(a:b)", keeps the first.
std::string firstName(const std::string &op_name) {
  std::string name = op_name.substr(0, op_name.find(';'));
  size_t slash = name.find("/(");
  size_t open = !name.empty() && name[0] == '(' ? 0
                : slash == std::string::npos    ? slash
                                                : slash + 1;
  if (open == std::string::npos) {
    return name;
  }
  size_t colon = std::string::npos;
  int depth = 0;
  for (size_t at = open; at < name.size(); ++at) {
    depth += name[at] == '(' ? 1 : name[at] == ')' ? -1 : 0;
    if (name[at] == ':' && depth == 1 && colon == std::string::npos) {
      colon = at;
    } else if (depth == 0) {
      return colon == std::string::npos
                 ? name
                 : name.substr(0, open) + name.substr(open + 1, colon - open - 1) +
                       name.substr(at + 1);
    }
  }
  return name;
}

std::string primitiveOf(const std::string &op_name) {
  size_t slash = op_name.rfind('/');
  return slash == std::string::npos ? op_name : op_name.substr(slash + 1);
}

class Builder {
public:
  Builder(const HloModule &module, const TraceCut &cut, const Placement &placement,
          Program *program)
      : module_(module), cut_(cut), placement_(placement), program_(*program) {}

  void run(bool with_operations) {
    program_.module = module_.name;
    program_.hlo_id = module_.id;
    program_.aliased_outputs = module_.aliased_outputs;
    for (const HloComputation &computation : module_.computations) {
      program_.instructions += computation.instructions.size();
      program_.has_loops |= std::any_of(
          computation.instructions.begin(), computation.instructions.end(),
          [](const HloInstruction &instruction) { return instruction.opcode == "while"; });
    }
    const HloComputation *entry = module_.find(module_.entry);
    for (const HloInstruction &instruction : entry->instructions) {
      if (instruction.opcode == "parameter") {
        ++program_.arguments;
        program_.argument_bytes += instruction.shape.sizeBytes();
      }
    }
    if (const HloInstruction *root = entry->find(entry->root)) {
      program_.output_bytes = root->shape.sizeBytes();
    }
    program_.has_operations = with_operations;
    if (with_operations) {
      addComputation(*entry, 1, 0);
    }
  }

private:
  /// How often a computation runs that an instruction runs; 0: not known.
  static uint64_t runsOf(const HloInstruction &caller, const HloComputation &called,
                         uint64_t runs) {
    constexpr uint32_t kBool = 1;
    if (caller.opcode == "conditional") {
      return 0;
    }
    if (caller.opcode != "while" || caller.trip_count == 0) {
      return caller.opcode == "while" ? 0 : runs;
    }
    const HloInstruction *root = called.find(called.root);
    bool is_condition = root && root->shape.parts.empty() && root->shape.element_type == kBool;
    return runs * (caller.trip_count + is_condition);
  }

  void forgetRuns(const HloComputation &computation) {
    const std::vector<uint32_t> &indices = indices_[computation.id];
    if (indices.empty() || program_.operations[indices.front()].runs == 0) {
      return; // what it runs has been forgotten, too
    }
    for (uint32_t index : indices) {
      program_.operations[index].runs = 0;
    }
    for (const HloInstruction &instruction : computation.instructions) {
      for (int64_t called : instruction.called) {
        const HloComputation *inner = runsOthers(instruction) ? module_.find(called) : nullptr;
        if (inner) {
          forgetRuns(*inner);
        }
      }
    }
  }

  /// Add the operations of a computation, which one launch runs `runs` times, and of all
  /// computations they run. Returns the indices of the former.
  std::vector<uint32_t> addComputation(const HloComputation &computation, uint64_t runs,
                                       int depth) {
    std::vector<uint32_t> &indices = indices_[computation.id];
    if (depth == kMaxNesting) {
      return {};
    }
    if (!visited_.insert(computation.id).second) {
      forgetRuns(computation); // several instructions run it
      return {};
    }
    users_.clear(); // of the computation being added; recomputed after a nested one
    for (const HloInstruction &instruction : computation.instructions) {
      if (isBookkeeping(instruction.opcode)) {
        continue;
      }
      auto index = static_cast<uint32_t>(program_.operations.size());
      program_.operations.push_back(describe(computation, instruction));
      program_.operations.back().runs = runs;
      program_.by_name.emplace(instruction.name, index);
      indices.push_back(index);
    }
    for (const HloInstruction &instruction : computation.instructions) {
      if (!runsOthers(instruction)) {
        continue;
      }
      std::vector<uint32_t> nested;
      for (int64_t called : instruction.called) {
        if (const HloComputation *body = module_.find(called)) {
          std::vector<uint32_t> inner =
              addComputation(*body, runsOf(instruction, *body, runs), depth + 1);
          nested.insert(nested.end(), inner.begin(), inner.end());
        }
      }
      program_.operations[program_.by_name[instruction.name]].nested = std::move(nested);
    }
    return indices;
  }

  Operation describe(const HloComputation &computation, const HloInstruction &instruction) {
    Operation operation;
    operation.name = instruction.name;
    operation.opcode = sharedText(instruction.opcode);
    operation.detail = sharedText(instruction.fusion_kind.empty() ? instruction.custom_call_target
                                                                  : instruction.fusion_kind);
    operation.shape = sharedText(instruction.shape.text());
    HloCost cost = costOf(module_, computation, instruction, &fused_flops_);
    operation.flops = cost.flops;
    operation.bytes = cost.bytes;
    if (instruction.opcode == "fusion") {
      operation.members = membersOf(instruction);
    }
    describeExchange(instruction, &operation);
    auto [source, origin] = sourceOf(computation, instruction);
    operation.origin = origin;
    if (source) {
      operation.op_name = firstName(source->op_name);
      operation.phase = phaseOfOpName(operation.op_name);
      operation.lines = linesOf(source->stack_frame);
      bool is_own = !operation.isInserted();
      operation.primitive = is_own ? sharedText(primitiveOf(operation.op_name)) : operation.opcode;
    } else {
      operation.primitive = operation.opcode;
    }
    return operation;
  }

  /// Processes that are in one group with a device of this process; unknown unless they are the
  /// same for all its devices.
  void describeExchange(const HloInstruction &instruction, Operation *operation) const {
    const std::vector<uint32_t> &processes = placement_.processes;
    if (processes.empty() ||
        Collectives::operationOf(instruction.opcode) == Collectives::kOperations.size()) {
      return;
    }
    std::optional<DeviceGroups::Lists> groups = instruction.groups.of(processes.size());
    std::set<std::set<uint32_t>> found;
    uint64_t devices = 1;
    for (const std::vector<int64_t> &group : groups.value_or(DeviceGroups::Lists())) {
      std::set<uint32_t> of_group;
      for (int64_t device : group) {
        of_group.insert(processes[static_cast<size_t>(device)]);
      }
      if (of_group.count(placement_.own) > 0) {
        found.insert(of_group);
        devices = group.size();
      }
    }
    operation->is_exchange_of_unknown = !groups || found.size() > 1;
    if (!operation->is_exchange_of_unknown && found.size() == 1) {
      operation->processes.assign(found.begin()->begin(), found.begin()->end());
      bool is_scattered = instruction.opcode == "reduce-scatter";
      operation->payload_bytes = instruction.shape.sizeBytes() * (is_scattered ? devices : 1);
    }
  }

  using Source = std::pair<const HloInstruction *, Origin>;

  Source sourceOf(const HloComputation &computation, const HloInstruction &instruction) {
    if (const HloInstruction *dense = denseMember(instruction)) {
      return {dense, Origin::kMembers};
    }
    if (hasOpName(instruction) && instruction.stack_frame) {
      return {&instruction, Origin::kOwn};
    }
    for (int64_t called : instruction.called) {
      if (const HloInstruction *member = bestMember(called)) {
        return {member, Origin::kMembers};
      }
    }
    if (hasOpName(instruction)) {
      return {&instruction, Origin::kOwn};
    }
    if (const HloInstruction *producer = producerOf(computation, instruction)) {
      return {producer, Origin::kProducer};
    }
    if (const HloInstruction *consumer = consumerOf(computation, instruction)) {
      return {consumer, Origin::kConsumer};
    }
    return {nullptr, Origin::kNone};
  }

  /// The matrix product or convolution of a fusion, which takes its time: the root, for example a
  /// sum, may be on another line. Null for products of several lines: the compiler gives such a
  /// fusion to the line that calls them all.
  const HloInstruction *denseMember(const HloInstruction &fusion) const {
    const HloInstruction *dense = nullptr;
    for (int64_t called : fusion.opcode == "fusion" ? fusion.called : std::vector<int64_t>()) {
      const HloComputation *body = module_.find(called);
      for (size_t i = 0; body && i < body->instructions.size(); ++i) {
        const HloInstruction &member = body->instructions[i];
        bool is_dense = member.opcode == "dot" || member.opcode == "convolution";
        if (!is_dense || !hasOpName(member) || !member.stack_frame) {
          continue;
        }
        if (dense && dense->stack_frame != member.stack_frame) {
          return nullptr;
        }
        dense = &member;
      }
    }
    return dense;
  }

  /// The operation that represents a computation: its root if the root has a source, otherwise the
  /// last operation with a source.
  const HloInstruction *bestMember(int64_t computation) const {
    const HloComputation *body = module_.find(computation);
    if (!body) {
      return nullptr;
    }
    const HloInstruction *root = body->find(body->root);
    if (root && hasOpName(*root) && root->stack_frame) {
      return root;
    }
    for (auto member = body->instructions.rbegin(); member != body->instructions.rend(); ++member) {
      if (hasOpName(*member) && member->stack_frame) {
        return &*member;
      }
    }
    return nullptr;
  }

  const HloInstruction *producerOf(const HloComputation &computation,
                                   const HloInstruction &instruction) const {
    const HloInstruction *at = &instruction;
    for (int i = 0; i < kMaxSearch && at && !at->operands.empty(); ++i) {
      at = computation.find(at->operands.front());
      if (at && hasOpName(*at) && at->stack_frame) {
        return at;
      }
      if (at && !at->called.empty()) {
        if (const HloInstruction *member = bestMember(at->called.front())) {
          return member;
        }
      }
    }
    return nullptr;
  }

  const HloInstruction *consumerOf(const HloComputation &computation,
                                   const HloInstruction &instruction) {
    if (users_of_ != &computation || users_.empty()) {
      users_.clear();
      users_of_ = &computation;
      for (const HloInstruction &user : computation.instructions) {
        for (int64_t operand : user.operands) {
          users_.emplace(operand, &user);
        }
      }
    }
    int64_t at = instruction.id;
    for (int i = 0; i < kMaxSearch; ++i) {
      auto [begin, end] = users_.equal_range(at);
      const HloInstruction *next = nullptr;
      for (auto user = begin; user != end; ++user) {
        if (hasOpName(*user->second) && user->second->stack_frame) {
          return user->second;
        }
        if (!user->second->called.empty()) {
          if (const HloInstruction *member = bestMember(user->second->called.front())) {
            return member;
          }
        }
        next = user->second;
      }
      if (!next) {
        return nullptr;
      }
      at = next->id;
    }
    return nullptr;
  }

  /// The stack of a frame, outermost first, from the jitted function on. Equal neighbours, which
  /// differ only in their columns, are joined.
  std::vector<SourceLine> linesOf(uint32_t frame) const {
    std::vector<SourceLine> lines;
    for (int i = 0; i < kMaxFrames && frame > 0 && frame <= module_.frames.size(); ++i) {
      const HloFrame &at = module_.frames[frame - 1];
      SourceLine line{at.function, at.file, at.line};
      if (lines.empty() || !(lines.back() == line)) {
        lines.push_back(line);
      }
      if (at.parent == frame) {
        break;
      }
      frame = at.parent;
    }
    std::reverse(lines.begin(), lines.end());
    lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(cutOf(lines)));
    dropRepeatedStart(&lines);
    return lines;
  }

  /// Inside a loop's body the stack is repeated from its start: f, g, f, g, body becomes f, g,
  /// body.
  static void dropRepeatedStart(std::vector<SourceLine> *lines) {
    for (size_t length = 1; length * 2 <= lines->size(); ++length) {
      auto second = lines->begin() + static_cast<std::ptrdiff_t>(length);
      if (std::equal(lines->begin(), second, second)) {
        lines->erase(lines->begin(), second);
        length = 0;
      }
    }
  }

  size_t cutOf(const std::vector<SourceLine> &lines) const {
    for (size_t i = 0; i < lines.size() && cut_.function.file != no_text_; ++i) {
      if (lines[i].file == cut_.function.file && lines[i].function == cut_.function.function) {
        return i;
      }
    }
    size_t first = 0;
    while (first < lines.size() && cut_.callers.count({lines[first].file, lines[first].function})) {
      ++first;
    }
    return first;
  }

  std::vector<Member> membersOf(const HloInstruction &fusion) {
    std::vector<Member> members;
    for (int64_t called : fusion.called) {
      const HloComputation *body = module_.find(called);
      for (size_t i = 0; body && i < body->instructions.size(); ++i) {
        const HloInstruction &instruction = body->instructions[i];
        if (members.size() >= kMaxMembers) {
          return members;
        }
        if (isBookkeeping(instruction.opcode)) {
          continue;
        }
        Member member;
        std::string op_name = firstName(instruction.op_name);
        member.primitive =
            sharedText(hasOpName(instruction) ? primitiveOf(op_name) : instruction.opcode);
        member.phase = phaseOfOpName(op_name);
        member.flops = costOf(module_, *body, instruction, &fused_flops_).flops;
        std::vector<SourceLine> lines = linesOf(instruction.stack_frame);
        if (!lines.empty()) {
          member.source = lines.back();
        }
        members.push_back(member);
      }
    }
    return members;
  }

  const HloModule &module_;
  const TraceCut &cut_;
  const Placement &placement_;
  Program &program_;
  const uint32_t no_text_ = Interner::instance().intern("");
  FusedFlops fused_flops_;
  std::set<int64_t> visited_;
  std::unordered_map<int64_t, std::vector<uint32_t>> indices_; // of operations, by computation
  const HloComputation *users_of_ = nullptr;
  std::unordered_multimap<int64_t, const HloInstruction *> users_;
};

} // namespace

/// Source: jaxlib's names of the calls: xla_ffi_python_cpu_callback, xla_python_gpu_callback.
bool Operation::isCallback() const {
  size_t python = detail.find("python_");
  return python != std::string_view::npos && endsWith(detail, "callback");
}

Phase phaseOfOpName(std::string_view op_name) {
  if (contains(op_name, "rematted_computation")) {
    return Phase::kRecompute;
  }
  if (contains(op_name, "transpose(")) {
    return Phase::kBackward;
  }
  return contains(op_name, "jvp(") ? Phase::kForward : Phase::kNone;
}

std::string_view sharedText(std::string_view text) {
  Interner &interner = Interner::instance();
  return interner.text(interner.intern(text));
}

namespace {

uint64_t heapBytes(const std::string &text) {
  constexpr size_t kInside = 15; // of the object itself
  return text.capacity() > kInside ? text.capacity() + 1 : 0;
}

} // namespace

uint64_t Program::sizeBytes() const {
  constexpr uint64_t kLinks = 24; // of an entry of the table by name
  uint64_t bytes = sizeof *this + heapBytes(module);
  for (const Operation &operation : operations) {
    bytes += sizeof operation + 2 * heapBytes(operation.name) + heapBytes(operation.op_name) +
             operation.lines.capacity() * sizeof(SourceLine) +
             operation.members.capacity() * sizeof(Member) +
             operation.nested.capacity() * sizeof(uint32_t);
    bytes += sizeof(std::pair<const std::string, uint32_t>) + kLinks;
  }
  return bytes;
}

bool buildProgram(std::string_view hlo, const TraceCut &cut, const Placement &placement,
                  bool with_operations, Program *program) {
  HloModule module;
  if (!readHloModule(hlo, &module)) {
    return false;
  }
  Builder(module, cut, placement, program).run(with_operations);
  return true;
}

} // namespace deepcontext::jax
