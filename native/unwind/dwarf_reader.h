#pragma once
// Reads the numbers of DWARF call frame information, never past the given end.
// Source: LSB 5.0, "Exception Frames"; DWARF 5, section 6.4.
#include <cstdint>
#include <cstring>

namespace deepcontext::unwind {

/// Bytes that can be read.
struct ByteRange {
  const uint8_t *begin = nullptr;
  const uint8_t *end = nullptr;

  bool contains(const uint8_t *place) const {
    auto value = reinterpret_cast<uintptr_t>(place);
    return value >= reinterpret_cast<uintptr_t>(begin) && value < reinterpret_cast<uintptr_t>(end);
  }
};

/// A position in a run of bytes. After a read past the end every value is 0 and `hasFailed()`.
class DwarfReader {
public:
  DwarfReader(const uint8_t *begin, const uint8_t *end) : at_(begin), end_(end) {}

  const uint8_t *position() const { return at_; }
  const uint8_t *end() const { return end_; }
  bool isAtEnd() const { return at_ >= end_; }
  bool hasFailed() const { return has_failed_; }

  template <typename Number> Number number() {
    Number value{};
    if (static_cast<size_t>(end_ - at_) < sizeof value) {
      fail();
      return value;
    }
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  uint8_t byte() { return number<uint8_t>(); }

  uint64_t unsignedLeb() {
    uint64_t value = 0;
    for (int shift = 0; !isAtEnd(); shift += 7) {
      uint8_t part = *at_++;
      value |= shift < 64 ? static_cast<uint64_t>(part & 0x7f) << shift : 0;
      if (!(part & 0x80)) {
        return value;
      }
    }
    fail();
    return 0;
  }

  int64_t signedLeb() {
    uint64_t value = 0;
    for (int shift = 0; !isAtEnd();) {
      uint8_t part = *at_++;
      value |= shift < 64 ? static_cast<uint64_t>(part & 0x7f) << shift : 0;
      shift += 7;
      if (!(part & 0x80)) {
        return static_cast<int64_t>(value | (shift < 64 && (part & 0x40) ? ~0ull << shift : 0));
      }
    }
    fail();
    return 0;
  }

  const char *text() {
    auto *begin = reinterpret_cast<const char *>(at_);
    auto *zero = static_cast<const uint8_t *>(std::memchr(at_, 0, static_cast<size_t>(end_ - at_)));
    if (!zero) {
      fail();
      return "";
    }
    at_ = zero + 1;
    return begin;
  }

  /// A run of `bytes`, from its first byte on.
  const uint8_t *skip(uint64_t bytes) {
    const uint8_t *begin = at_;
    if (bytes > static_cast<uint64_t>(end_ - at_)) {
      fail();
      return begin;
    }
    at_ += bytes;
    return begin;
  }

  /// A pointer in one of the DW_EH_PE encodings; `data` is what data-relative ones count from.
  uintptr_t pointer(uint8_t encoding, uintptr_t data);

private:
  void fail() {
    has_failed_ = true;
    at_ = end_;
  }

  const uint8_t *at_;
  const uint8_t *end_;
  bool has_failed_ = false;
};

inline uintptr_t DwarfReader::pointer(uint8_t encoding, uintptr_t data) {
  constexpr uint8_t kOmitted = 0xff, kRelativeToHere = 0x10, kRelativeToData = 0x30;
  constexpr uint8_t kIndirect = 0x80;
  if (encoding == kOmitted) {
    return 0;
  }
  auto here = reinterpret_cast<uintptr_t>(at_);
  uint64_t value = 0;
  switch (encoding & 0x0f) {
  case 0x00: // as wide as an address
  case 0x04:
  case 0x0c:
    value = number<uint64_t>();
    break;
  case 0x01:
    value = unsignedLeb();
    break;
  case 0x02:
    value = number<uint16_t>();
    break;
  case 0x03:
    value = number<uint32_t>();
    break;
  case 0x09:
    value = static_cast<uint64_t>(signedLeb());
    break;
  case 0x0a:
    value = static_cast<uint64_t>(static_cast<int64_t>(number<int16_t>()));
    break;
  case 0x0b:
    value = static_cast<uint64_t>(static_cast<int64_t>(number<int32_t>()));
    break;
  default:
    fail();
  }
  switch (value == 0 ? 0 : encoding & 0x70) {
  case 0:
    break;
  case kRelativeToHere:
    value += here;
    break;
  case kRelativeToData:
    value += data;
    break;
  default:
    fail();
  }
  if (encoding & kIndirect) {
    fail(); // used for personality routines only, which are skipped
  }
  return has_failed_ ? 0 : static_cast<uintptr_t>(value);
}

} // namespace deepcontext::unwind
