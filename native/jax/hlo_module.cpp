#include "jax/hlo_module.h"

#include <charconv>
#include <iterator>

#include "core/interner.h"
#include "jax/wire.h"

namespace deepcontext::jax {

namespace {

// Field numbers.
// Source: xla/service/hlo.proto, xla/xla_data.proto; append-only.
namespace module_field {
constexpr uint32_t kName = 1, kComputations = 3, kId = 5, kEntry = 6, kAlias = 8, kFrames = 17;
}
namespace computation_field {
constexpr uint32_t kInstructions = 2, kId = 5, kRoot = 6;
}
namespace instruction_field {
constexpr uint32_t kName = 1, kOpcode = 2, kShape = 3, kMetadata = 7, kFusionKind = 11,
                   kConvolution = 16, kCustomCall = 28, kDot = 30, kId = 35, kOperands = 36,
                   kCalled = 38, kBackendConfig = 43, kReplicaGroups = 49, kDeviceList = 87,
                   kIota = 92, kMesh = 93;
}
constexpr uint32_t kMaxTupleDepth = 32; // a damaged file must not exhaust the stack

struct PrimitiveType {
  const char *name;
  uint32_t bytes; // of an element that is not packed
};
// Source: xla/xla_data.proto, enum PrimitiveType. Types of less than 8 bits take a byte, unless the
// layout packs them.
constexpr PrimitiveType kPrimitiveTypes[] = {
    {"invalid", 0},    {"pred", 1},     {"s8", 1},       {"s16", 2},           {"s32", 4},
    {"s64", 8},        {"u8", 1},       {"u16", 2},      {"u32", 4},           {"u64", 8},
    {"f16", 2},        {"f32", 4},      {"f64", 8},      {"tuple", 0},         {"opaque", 0},
    {"c64", 8},        {"bf16", 2},     {"token", 0},    {"c128", 16},         {"f8e5m2", 1},
    {"f8e4m3fn", 1},   {"s4", 1},       {"u4", 1},       {"f8e4m3b11fnuz", 1}, {"f8e5m2fnuz", 1},
    {"f8e4m3fnuz", 1}, {"s2", 1},       {"u2", 1},       {"f8e4m3", 1},        {"f8e3m4", 1},
    {"s1", 1},         {"u1", 1},       {"f4e2m1fn", 1}, {"f8e8m0fnu", 1},     {"buffer", 0},
    {"f6e3m2fn", 1},   {"f6e2m3fn", 1},
};

/// A type that is not in this list has a number instead of a name, and no size.
std::string primitiveName(uint32_t type) {
  return type < std::size(kPrimitiveTypes) ? kPrimitiveTypes[type].name
                                           : "type" + std::to_string(type);
}

uint64_t primitiveBits(uint32_t type) {
  return type < std::size(kPrimitiveTypes) ? kPrimitiveTypes[type].bytes * 8 : 0;
}

/// LayoutProto.element_size_in_bits.
uint32_t readElementBits(std::string_view layout) {
  uint32_t bits = 0;
  forEachField(layout, [&](const WireField &field) {
    bits = field.id == 7 ? static_cast<uint32_t>(field.number) : bits;
  });
  return bits;
}

HloShape readShape(std::string_view bytes, uint32_t depth = 0) {
  HloShape shape;
  forEachField(bytes, [&](const WireField &field) {
    if (field.id == 2) {
      shape.element_type = static_cast<uint32_t>(field.number);
    } else if (field.id == 3) {
      appendNumbers(field, &shape.dimensions);
    } else if (field.id == 4 && depth < kMaxTupleDepth) {
      shape.parts.push_back(readShape(field.bytes, depth + 1));
    } else if (field.id == 5) {
      shape.element_bits = readElementBits(field.bytes);
    }
  });
  return shape;
}

void readMetadata(std::string_view bytes, HloInstruction *instruction) {
  forEachField(bytes, [&](const WireField &field) {
    if (field.id == 2) {
      instruction->op_name = textOf(field.bytes);
    } else if (field.id == 15) {
      instruction->stack_frame = static_cast<uint32_t>(field.number);
    }
  });
}

/// How often a loop runs its body; 0 where XLA does not know it.
///
/// Source: xla/xla_data.proto, WhileLoopBackendConfig, as JSON.
uint64_t readTripCount(std::string_view config) {
  constexpr std::string_view kKey = R"("known_trip_count":{"n":")";
  size_t at = config.find(kKey);
  uint64_t count = 0;
  if (at != std::string_view::npos) {
    std::string_view number = config.substr(at + kKey.size());
    std::from_chars(number.data(), number.data() + number.size(), count);
  }
  return count;
}

HloInstruction readInstruction(std::string_view bytes) {
  namespace id = instruction_field;
  HloInstruction instruction;
  forEachField(bytes, [&](const WireField &field) {
    switch (field.id) {
    case id::kName:
      instruction.name = textOf(field.bytes);
      break;
    case id::kOpcode:
      instruction.opcode = textOf(field.bytes);
      break;
    case id::kShape:
      instruction.shape = readShape(field.bytes);
      break;
    case id::kMetadata:
      readMetadata(field.bytes, &instruction);
      break;
    case id::kFusionKind:
      instruction.fusion_kind = textOf(field.bytes);
      break;
    case id::kCustomCall:
      instruction.custom_call_target = textOf(field.bytes);
      break;
    case id::kBackendConfig:
      instruction.trip_count = readTripCount(field.bytes);
      break;
    case id::kDot: {
      forEachField(field.bytes, [&](const WireField &part) {
        if (part.id == 1) {
          appendNumbers(part, &instruction.lhs_contracting);
        }
      });
      break;
    }
    case id::kConvolution: {
      instruction.kernel_output_feature = 0; // proto3 leaves a zero out
      forEachField(field.bytes, [&](const WireField &part) {
        if (part.id == 4) {
          instruction.kernel_output_feature = static_cast<int64_t>(part.number);
        }
      });
      break;
    }
    case id::kId:
      instruction.id = static_cast<int64_t>(field.number);
      break;
    case id::kReplicaGroups:
      instruction.groups.readList(field.bytes);
      break;
    case id::kDeviceList:
      instruction.groups.readLists(field.bytes);
      break;
    case id::kIota:
      instruction.groups.readIota(field.bytes);
      break;
    case id::kMesh:
      instruction.groups.readMesh(field.bytes);
      break;
    case id::kOperands:
      appendNumbers(field, &instruction.operands);
      break;
    case id::kCalled:
      appendNumbers(field, &instruction.called);
      break;
    default:
      break;
    }
  });
  return instruction;
}

HloComputation readComputation(std::string_view bytes) {
  HloComputation computation;
  forEachField(bytes, [&](const WireField &field) {
    if (field.id == computation_field::kInstructions) {
      computation.instructions.push_back(readInstruction(field.bytes));
    } else if (field.id == computation_field::kId) {
      computation.id = static_cast<int64_t>(field.number);
    } else if (field.id == computation_field::kRoot) {
      computation.root = static_cast<int64_t>(field.number);
    }
  });
  for (size_t i = 0; i < computation.instructions.size(); ++i) {
    computation.by_id.emplace(computation.instructions[i].id, i);
  }
  return computation;
}

struct Location {
  uint32_t file = 0;
  uint32_t function = 0;
  uint32_t line = 0;
};

/// StackFrameIndex: tables of texts, of locations, and of frames that name their caller.
std::vector<HloFrame> readFrames(std::string_view bytes) {
  std::vector<std::string_view> files, functions;
  std::vector<Location> locations;
  std::vector<std::pair<uint32_t, uint32_t>> frames; // location, parent
  forEachField(bytes, [&](const WireField &field) {
    uint32_t numbers[5] = {};
    if (field.id == 3 || field.id == 4) {
      forEachField(field.bytes, [&](const WireField &number) {
        if (number.id < 5) {
          numbers[number.id] = static_cast<uint32_t>(number.number);
        }
      });
    }
    switch (field.id) {
    case 1:
      files.push_back(field.bytes);
      break;
    case 2:
      functions.push_back(field.bytes);
      break;
    case 3:
      locations.push_back({numbers[1], numbers[2], numbers[3]});
      break;
    case 4:
      frames.emplace_back(numbers[1], numbers[2]);
      break;
    default:
      break;
    }
  });
  auto resolve = [](const std::vector<std::string_view> &texts, uint32_t id) {
    return Interner::instance().intern(id > 0 && id <= texts.size() ? textOf(texts[id - 1])
                                                                    : std::string());
  };
  std::vector<HloFrame> resolved;
  for (auto [location_id, parent] : frames) {
    Location location;
    if (location_id > 0 && location_id <= locations.size()) {
      location = locations[location_id - 1];
    }
    resolved.push_back({resolve(functions, location.function), resolve(files, location.file),
                        location.line, parent});
  }
  return resolved;
}

uint64_t countAliases(std::string_view bytes) {
  uint64_t count = 0;
  forEachField(bytes, [&](const WireField &field) { count += field.id == 1; });
  return count;
}

} // namespace

uint64_t HloShape::elements() const {
  uint64_t count = 1;
  if (!parts.empty()) {
    count = 0;
    for (const HloShape &part : parts) {
      count += part.elements();
    }
    return count;
  }
  for (int64_t size : dimensions) {
    count *= size > 0 ? static_cast<uint64_t>(size) : 0;
  }
  return count;
}

uint64_t HloShape::sizeBytes() const {
  if (parts.empty()) {
    uint64_t bits = element_bits ? element_bits : primitiveBits(element_type);
    return (elements() * bits + 7) / 8;
  }
  uint64_t bytes = 0;
  for (const HloShape &part : parts) {
    bytes += part.sizeBytes();
  }
  return bytes;
}

std::string HloShape::text() const {
  std::string out;
  if (!parts.empty()) {
    for (const HloShape &part : parts) {
      out += (out.empty() ? "(" : ", ") + part.text();
    }
    return out + ")";
  }
  out = primitiveName(element_type);
  out += '[';
  for (size_t i = 0; i < dimensions.size(); ++i) {
    out += (i ? "," : "") + std::to_string(dimensions[i]);
  }
  return out + ']';
}

bool readHloModule(std::string_view bytes, HloModule *module) {
  namespace id = module_field;
  bool is_intact = forEachField(bytes, [&](const WireField &field) {
    switch (field.id) {
    case id::kName:
      module->name = textOf(field.bytes);
      break;
    case id::kComputations:
      module->computations.push_back(readComputation(field.bytes));
      break;
    case id::kId:
      module->id = static_cast<int64_t>(field.number);
      break;
    case id::kEntry:
      module->entry = static_cast<int64_t>(field.number);
      break;
    case id::kAlias:
      module->aliased_outputs = countAliases(field.bytes);
      break;
    case id::kFrames:
      module->frames = readFrames(field.bytes);
      break;
    default:
      break;
    }
  });
  for (size_t i = 0; i < module->computations.size(); ++i) {
    module->by_id.emplace(module->computations[i].id, i);
  }
  return is_intact && module->find(module->entry) != nullptr;
}

} // namespace deepcontext::jax
