#pragma once
// Operator names with the shapes and element types of their inputs, through the AOTI C ABI.
#include <cstdint>
#include <vector>

#include "core/interner.h"
#include "core/recorder_extension.h"

namespace deepcontext::torch {

/// Ids of names such as "aten::mm(f32[8, 4], f32[4, 16])", one bracket per tensor argument.
/// Owner thread only.
///
/// A text is made for shapes that are not cached; otherwise only sizes and types are compared,
/// all of them.
class ShapeNames final : public RecorderExtension {
public:
  static constexpr ExtensionPlace kPlace = ExtensionPlace::kOperatorShapes;
  static constexpr uint32_t kMostParts = 29; // the name; per tensor rank with type, sizes
  static constexpr uint32_t kSlots = 1024;

  ShapeNames() : slots_(kSlots) {}

  uint32_t lookup(NameCache &names, const void *record_function, int inputs_offset,
                  const char *name);

private:
  struct Slot {
    uint32_t count = 0; // 0: empty
    uint32_t id = 0;
    int64_t parts[kMostParts] = {};
  };
  std::vector<Slot> slots_;
};

} // namespace deepcontext::torch
