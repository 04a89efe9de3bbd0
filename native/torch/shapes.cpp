#include "torch/shapes.h"

#include <cstdio>
#include <cstring>

#include "torch/element_types.h"
#include "torch/inputs.h"

namespace deepcontext::torch {

namespace {

/// Bounded text builder; appends nothing more once it is full.
class Text {
public:
  Text(char *out, size_t capacity) : out_(out), capacity_(capacity) { out_[0] = '\0'; }
  void append(const char *piece) {
    size_t length = std::strlen(piece);
    if (is_full_ || length_ + length + kEllipsisBytes >= capacity_) {
      if (!is_full_) {
        std::memcpy(out_ + length_, "...", kEllipsisBytes);
        length_ += kEllipsisBytes - 1;
      }
      is_full_ = true;
      return;
    }
    std::memcpy(out_ + length_, piece, length + 1);
    length_ += length;
  }
  void append(int64_t number) {
    char digits[24];
    std::snprintf(digits, sizeof digits, "%lld", static_cast<long long>(number));
    append(digits);
  }
  size_t length() const { return length_; }

private:
  static constexpr size_t kEllipsisBytes = 4;
  char *out_;
  size_t capacity_;
  size_t length_ = 0;
  bool is_full_ = false;
};

void appendShape(Text &text, void *tensor) {
  Form form;
  if (!form.read(tensor)) {
    text.append("[?]");
    return;
  }
  text.append(elementType(form.type).name);
  text.append("[");
  for (int64_t i = 0; i < form.dimensions; ++i) {
    if (i > 0) {
      text.append(", ");
    }
    text.append(form.sizes[i]);
  }
  text.append("]");
}

/// The text as numbers: the name's id; per tensor its rank and type in one number, then its sizes.
struct Key {
  static constexpr int kTypeShift = 32; // above the rank

  int64_t parts[ShapeNames::kMostParts];
  uint32_t count = 0;

  bool append(int64_t part) {
    if (count == ShapeNames::kMostParts) {
      return false;
    }
    parts[count++] = part;
    return true;
  }
  bool appendShape(void *tensor) {
    Form form;
    if (!form.read(tensor)) {
      return append(-1);
    }
    bool fits = append(form.dimensions | static_cast<int64_t>(form.type) << kTypeShift);
    for (int64_t i = 0; fits && i < form.dimensions; ++i) {
      fits = append(form.sizes[i]);
    }
    return fits;
  }
  uint64_t hash() const {
    uint64_t value = count;
    for (uint32_t i = 0; i < count; ++i) {
      value = (value ^ static_cast<uint64_t>(parts[i])) * 0x9E3779B97F4A7C15u;
      value ^= value >> 29;
    }
    return value;
  }
};

/// Write "name(f32[8, 16], i64[16])": one bracket per tensor argument, in order, after the type of
/// its elements. A list that does not fit ends in "...".
void formatWithShapes(const void *record_function, int inputs_offset, const char *name, char *out,
                      size_t capacity) {
  Text text(out, capacity);
  text.append(name);
  text.append("(");
  bool is_first = true;
  forEachTensor(record_function, inputs_offset, [&](void *tensor) {
    if (!is_first) {
      text.append(", ");
    }
    is_first = false;
    appendShape(text, tensor);
  });
  text.append(")");
}

} // namespace

uint32_t ShapeNames::lookup(NameCache &names, const void *record_function, int inputs_offset,
                            const char *name) {
  Key key;
  bool fits = key.append(names.lookup(name));
  forEachTensor(record_function, inputs_offset,
                [&](void *tensor) { fits = fits && key.appendShape(tensor); });
  Slot *slot = fits ? &slots_[key.hash() % kSlots] : nullptr;
  if (slot && slot->count == key.count &&
      std::memcmp(slot->parts, key.parts, key.count * sizeof key.parts[0]) == 0) {
    return slot->id;
  }
  char text[512];
  formatWithShapes(record_function, inputs_offset, name, text, sizeof text);
  uint32_t id = names.lookup(text);
  if (slot) {
    std::memcpy(slot->parts, key.parts, key.count * sizeof key.parts[0]);
    slot->count = key.count;
    slot->id = id;
  }
  return id;
}

} // namespace deepcontext::torch
