#include "python/location_table.h"

namespace deepcontext {

namespace {

constexpr unsigned kNoColumns = 13;
constexpr unsigned kLongForm = 14;
constexpr unsigned kNoLocation = 15;
constexpr unsigned kOneLineForm0 = 10;

/// Reader of the table's variable-length integers: 6 bits a byte, 0x40 marks a continuation.
class Varints {
public:
  explicit Varints(std::string_view bytes) : bytes_(bytes) {}
  bool atEnd() const { return position_ >= bytes_.size(); }
  unsigned byte() { return atEnd() ? 0 : static_cast<unsigned char>(bytes_[position_++]); }
  uint32_t unsignedValue() {
    constexpr unsigned kWidest = 32;
    unsigned shift = 0;
    unsigned next = byte();
    uint32_t value = next & 63;
    while (next & 64) {
      next = byte();
      shift += 6;
      value |= shift < kWidest ? (next & 63) << shift : 0;
    }
    return value;
  }
  int64_t signedValue() {
    uint32_t value = unsignedValue();
    int64_t magnitude = value >> 1;
    return (value & 1) ? -magnitude : magnitude;
  }

private:
  std::string_view bytes_;
  size_t position_ = 0;
};

} // namespace

uint32_t lineOfInstruction(std::string_view table, int first_line, uint32_t offset) {
  constexpr uint32_t kCodeUnitBytes = 2;
  Varints reader(table);
  int64_t line = first_line;
  uint32_t start = 0;
  while (!reader.atEnd()) {
    unsigned head = reader.byte();
    unsigned form = (head >> 3) & 15;
    uint32_t length = ((head & 7) + 1) * kCodeUnitBytes;
    if (form == kLongForm) {
      line += reader.signedValue();
      reader.unsignedValue(); // lines the range spans
      reader.unsignedValue(); // first column
      reader.unsignedValue(); // last column
    } else if (form == kNoColumns) {
      line += reader.signedValue();
    } else if (form >= kOneLineForm0 && form < kNoColumns) {
      line += form - kOneLineForm0;
      reader.byte();
      reader.byte();
    } else if (form != kNoLocation) {
      reader.byte(); // short form: same line, columns in one byte
    }
    if (offset < start + length) {
      return form == kNoLocation || line < 0 ? 0 : static_cast<uint32_t>(line);
    }
    start += length;
  }
  return 0;
}

} // namespace deepcontext
