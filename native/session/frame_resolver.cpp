#include "session/frame_resolver.h"

#include "jax/source_frames.h"
#include "python/code_table.h"
#include "python/location_table.h"
#include "python/module_table.h"
#include "sampling/thread_names.h"
#include "unwind/address_table.h"
#include "unwind/readable_name.h"

namespace deepcontext {

FrameRecord ProfileFrameResolver::resolve(const Node &node) const {
  Interner &interner = Interner::instance();
  uint32_t nothing = interner.intern("");
  switch (node.kind) {
  case FrameKind::kPython: {
    if (jax::SourceFrames::isOne(node.a)) {
      return jax::SourceFrames::instance().frame(node.a);
    }
    const CodeInfo &code = CodeTable::instance().info(static_cast<uint32_t>(node.a));
    uint32_t line = lineOfInstruction(code.table, code.first_line, static_cast<uint32_t>(node.b));
    return {node.kind, interner.intern(code.name), interner.intern(code.file),
            line ? line : static_cast<uint32_t>(code.first_line)};
  }
  case FrameKind::kThread: {
    std::string label = ThreadNames::instance().label(static_cast<uint32_t>(node.b));
    return {node.kind, label.empty() ? static_cast<uint32_t>(node.a) : interner.intern(label),
            nothing, 0};
  }
  case FrameKind::kModule:
    return {node.kind,
            interner.intern(ModuleTable::instance().label(static_cast<uint32_t>(node.a))), nothing,
            0};
  case FrameKind::kKernel: {
    std::string name(interner.text(static_cast<uint32_t>(node.a)));
    return {node.kind, interner.intern(unwind::demangledName(name)), nothing, 0};
  }
  case FrameKind::kNative: {
    unwind::AddressTable &table = unwind::AddressTable::instance();
    unwind::Function function = table.function(static_cast<uint32_t>(node.a));
    FrameKind kind = function.isHidden() ? FrameKind::kLink : node.kind;
    return {kind, function.name, interner.intern(table.file(function.file).path), 0};
  }
  case FrameKind::kStall: {
    auto file = static_cast<uint32_t>(node.b >> 32); // 0: unknown
    return {node.kind, static_cast<uint32_t>(node.a), file ? file : nothing,
            static_cast<uint32_t>(node.b)};
  }
  default:
    return {node.kind, static_cast<uint32_t>(node.a), nothing, 0};
  }
}

} // namespace deepcontext
