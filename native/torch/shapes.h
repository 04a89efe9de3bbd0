#pragma once
// Operator names with the shapes of their inputs, through the AOTI C ABI.
#include <cstdint>
#include <vector>

#include "core/interner.h"
#include "core/recorder_extension.h"

namespace deepcontext::torch {

/// Ids of names such as "aten::addmm([16], [8, 4], [4, 16])", one bracket per tensor argument.
/// Owner thread only.
///
/// A text is made for shapes that are not cached; otherwise only the sizes are compared, all of
/// them.
class ShapeNames final : public RecorderExtension {
public:
  static constexpr ExtensionPlace kPlace = ExtensionPlace::kOperatorShapes;
  static constexpr uint32_t kMostParts = 29; // the name; per tensor its rank and sizes
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
