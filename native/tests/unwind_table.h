#pragma once
// Unwind information for one function, made by tests.
#include <cstdint>
#include <cstring>
#include <vector>

#include "unwind/frame_row.h"

namespace deepcontext::test {

using Bytes = std::vector<uint8_t>;

inline Bytes operator+(Bytes left, const Bytes &right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

template <typename Number> Bytes bytesOf(Number number) {
  Bytes bytes(sizeof number);
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

/// An entry of .eh_frame: its length, then its content, padded.
inline Bytes entryOf(Bytes content) {
  content.resize((content.size() + 7) / 8 * 8 + 4);
  return bytesOf(static_cast<uint32_t>(content.size())) + content;
}

/// .eh_frame of a function at `start`: a common entry without augmentation, code factor 4 and data
/// factor -8, then the function's, with their programs.
inline Bytes frameTable(uint8_t return_column, const Bytes &common, const Bytes &function,
                        uint64_t start, uint64_t length) {
  Bytes first = entryOf(Bytes{0, 0, 0, 0, 1, 0, 4, 0x78, return_column} + common);
  auto distance = static_cast<uint32_t>(first.size() + 4);
  return first + entryOf(bytesOf(distance) + bytesOf(start) + bytesOf(length) + function) +
         bytesOf(uint32_t{0});
}

/// A function of 256 bytes with its table, as in a loaded object. The code is not there.
class TestFunction {
public:
  TestFunction(const unwind::DwarfRegisters &registers, const Bytes &common, const Bytes &function)
      : registers_(registers) {
    constexpr int32_t kHeader = 20, kStart = 4096;
    Bytes header =
        Bytes{1, 0x1b, 0x03, 0x3b} + bytesOf(kHeader - 4) + bytesOf(uint32_t{1}) + bytesOf(kStart);
    memory_.resize(kStart + 256);
    auto base = reinterpret_cast<uintptr_t>(memory_.data());
    start_ = base + kStart;
    Bytes table =
        frameTable(static_cast<uint8_t>(registers.return_address), common, function, start_, 256);
    uint32_t common_bytes;
    std::memcpy(&common_bytes, table.data(), sizeof common_bytes);
    header = header + bytesOf(kHeader + static_cast<int32_t>(common_bytes) + 4) + table;
    std::memcpy(memory_.data(), header.data(), header.size());
  }

  /// The row at an offset into the function.
  unwind::FrameRow at(uintptr_t offset) const {
    auto found = unwind::findRow(memory_.data(), {memory_.data(), memory_.data() + memory_.size()},
                                 start_ + offset, registers_);
    return found ? found->row : unwind::FrameRow();
  }

private:
  unwind::DwarfRegisters registers_;
  Bytes memory_;
  uintptr_t start_;
};

} // namespace deepcontext::test
