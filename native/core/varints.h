#pragma once
// Whole numbers of any size, seven bits a byte: small ones take one.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace deepcontext {

/// Numbers one after the other, to be read in the order in which they were added.
class Varints {
public:
  void put(uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<uint8_t>(value | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<uint8_t>(value));
  }
  void putSigned(int64_t value) {
    put(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
  }
  /// The number at `place`, which moves behind it.
  uint64_t number(size_t *place) const {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      uint8_t byte = bytes_[(*place)++];
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) {
        return value;
      }
    }
  }
  int64_t signedNumber(size_t *place) const {
    uint64_t value = number(place);
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  size_t bytes() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

private:
  std::vector<uint8_t> bytes_;
};

} // namespace deepcontext
