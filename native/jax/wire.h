#pragma once
// Protocol buffer wire format, read in place: enough for XSpace and HloModuleProto.
//
//   varint      7 bits a byte, low first, 0x80 marks a continuation
//   field       varint (number << 3 | type), then by type:
//   type 0      varint
//   type 1      8 bytes, little-endian
//   type 2      varint length, then so many bytes (message, string, packed numbers)
//   type 5      4 bytes, little-endian
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace deepcontext::jax {

/// One field of a message; `number` is valid for types 0, 1 and 5, `bytes` for type 2.
struct WireField {
  uint32_t id = 0;
  uint32_t type = 0;
  uint64_t number = 0;
  std::string_view bytes;
};

/// Walks the fields of one message. Never reads outside the bytes it was given; damaged input ends
/// the walk and leaves `isDamaged()` true.
class WireReader {
public:
  explicit WireReader(std::string_view bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool next(WireField *field) {
    if (at_ >= end_) {
      return false;
    }
    uint64_t tag = varint();
    field->id = static_cast<uint32_t>(tag >> 3);
    field->type = static_cast<uint32_t>(tag & 7);
    switch (field->type) {
    case 0:
      field->number = varint();
      break;
    case 1:
      field->number = fixed<uint64_t>();
      break;
    case 2:
      field->bytes = take(varint());
      break;
    case 5:
      field->number = fixed<uint32_t>();
      break;
    default:
      is_damaged_ = true;
    }
    return !is_damaged_;
  }

  bool isDamaged() const { return is_damaged_; }
  bool atEnd() const { return at_ >= end_; }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= end_) {
        break;
      }
      auto byte = static_cast<uint8_t>(*at_++);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) {
        return value;
      }
    }
    is_damaged_ = true;
    return 0;
  }

private:
  template <typename T> uint64_t fixed() {
    std::string_view bytes = take(sizeof(T));
    T value{};
    if (bytes.size() == sizeof(T)) {
      std::memcpy(&value, bytes.data(), bytes.size());
    }
    return value;
  }

  std::string_view take(uint64_t length) {
    if (length > static_cast<uint64_t>(end_ - at_)) {
      is_damaged_ = true;
      return {};
    }
    std::string_view bytes(at_, static_cast<size_t>(length));
    at_ += length;
    return bytes;
  }

  const char *at_;
  const char *end_;
  bool is_damaged_ = false;
};

/// A string field as text. Invalid UTF-8, which Python does not accept, becomes '?'.
inline std::string textOf(std::string_view bytes) {
  std::string text(bytes);
  for (size_t i = 0; i < text.size();) {
    auto lead = static_cast<uint8_t>(text[i]);
    size_t length = lead < 0x80                   ? 1
                    : lead >= 0xC2 && lead < 0xE0 ? 2
                    : (lead & 0xF0) == 0xE0       ? 3
                                                  : 0;
    bool is_whole = length > 0 && i + length <= text.size();
    for (size_t j = 1; is_whole && j < length; ++j) {
      is_whole = (static_cast<uint8_t>(text[i + j]) & 0xC0) == 0x80;
    }
    auto second = length == 3 && is_whole ? static_cast<uint8_t>(text[i + 1]) : uint8_t{0xA0};
    bool is_overlong = lead == 0xE0 && second < 0xA0;
    bool is_surrogate = lead == 0xED && second >= 0xA0;
    if (!is_whole || is_overlong || (is_surrogate && length == 3)) {
      text[i] = '?';
      length = 1;
    }
    i += length;
  }
  return text;
}

/// Call `visit` with each field of a message. False when the bytes are damaged.
template <typename Visit> bool forEachField(std::string_view bytes, Visit visit) {
  WireReader reader(bytes);
  WireField field;
  while (reader.next(&field)) {
    visit(field);
  }
  return !reader.isDamaged();
}

/// Append the numbers of a repeated field, packed or not.
inline void appendNumbers(const WireField &field, std::vector<int64_t> *numbers) {
  if (field.type != 2) {
    numbers->push_back(static_cast<int64_t>(field.number));
    return;
  }
  WireReader reader(field.bytes);
  while (!reader.atEnd() && !reader.isDamaged()) {
    uint64_t value = reader.varint();
    if (!reader.isDamaged()) {
      numbers->push_back(static_cast<int64_t>(value));
    }
  }
}

} // namespace deepcontext::jax
