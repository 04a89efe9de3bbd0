#include "unwind/frame_row.h"

#include <algorithm>

namespace deepcontext::unwind {

namespace {

// .eh_frame_hdr, as every linker for x86-64 and aarch64 writes it:
//   OFFSET  SIZE  DESCRIPTION
//   0       1     version, 1
//   1       1     encoding of the pointer to .eh_frame
//   2       1     encoding of the number of entries
//   3       1     encoding of the table: 0x3b, 4 bytes signed, relative to this header
//   4       -     pointer to .eh_frame, number of entries, table sorted by address
struct TableEntry {
  int32_t function;
  int32_t description;
};
constexpr uint8_t kTableEncoding = 0x3b;

/// The bytes of an entry of .eh_frame after its length; none when the entry is not inside the
/// segment, or is 64-bit DWARF, which compilers do not write here.
DwarfReader entryAt(const uint8_t *begin, ByteRange segment) {
  if (!segment.contains(begin)) {
    return {begin, begin};
  }
  DwarfReader reader(begin, segment.end);
  auto bytes = reader.number<uint32_t>();
  const uint8_t *content = reader.position();
  bool is_inside = bytes <= static_cast<uint64_t>(segment.end - content);
  return {content, is_inside ? content + bytes : content};
}

/// Read what the letters of the augmentation announce. Letters without data, among them 'B' (return
/// addresses are signed with the second key), need nothing here.
bool readAugmentation(const char *letters, DwarfReader values, CommonEntry *common) {
  for (; *letters; ++letters) {
    if (*letters == 'R') {
      common->pointer_encoding = values.byte();
    } else if (*letters == 'L') {
      values.byte();
    } else if (*letters == 'P') {
      uint8_t encoding = values.byte();
      values.pointer(encoding & 0x0f, 0);
    } else if (*letters == 'S') {
      common->is_signal_frame = true;
    }
  }
  return !values.hasFailed();
}

std::optional<CommonEntry> readCommon(const uint8_t *begin, ByteRange segment,
                                      const DwarfRegisters &registers) {
  DwarfReader reader = entryAt(begin, segment);
  CommonEntry common;
  reader.number<uint32_t>(); // 0: this is a common information entry
  uint8_t version = reader.byte();
  const char *augmentation = reader.text();
  common.code_factor = reader.unsignedLeb();
  common.data_factor = reader.signedLeb();
  uint64_t return_column = version == 1 ? reader.byte() : reader.unsignedLeb();
  if (reader.hasFailed() || return_column != registers.return_address) {
    return std::nullopt;
  }
  if (*augmentation == 'z') {
    common.is_augmented = true;
    uint64_t length = reader.unsignedLeb();
    const uint8_t *data = reader.skip(length);
    if (!readAugmentation(augmentation + 1, {data, reader.position()}, &common)) {
      return std::nullopt;
    }
  } else if (*augmentation) {
    return std::nullopt;
  }
  common.program = {reader.position(), reader.end()};
  return reader.hasFailed() ? std::nullopt : std::optional(common);
}

/// The description of the function that `pc` may lie in, by binary search.
const uint8_t *findDescription(const uint8_t *header, ByteRange segment, uintptr_t pc) {
  if (!segment.contains(header)) {
    return nullptr;
  }
  DwarfReader reader(header, segment.end);
  auto base = reinterpret_cast<uintptr_t>(header);
  uint8_t version = reader.byte();
  uint8_t frame_encoding = reader.byte();
  uint8_t count_encoding = reader.byte();
  uint8_t table_encoding = reader.byte();
  reader.pointer(frame_encoding, base);
  uint64_t count = reader.pointer(count_encoding, base);
  const uint8_t *table = reader.position();
  bool is_aligned = reinterpret_cast<uintptr_t>(table) % alignof(TableEntry) == 0;
  bool is_known =
      version == 1 && table_encoding == kTableEncoding && is_aligned && !reader.hasFailed();
  if (!is_known || count == 0 ||
      count > static_cast<uint64_t>(segment.end - table) / sizeof(TableEntry)) {
    return nullptr;
  }
  auto *first = reinterpret_cast<const TableEntry *>(table);
  auto wanted = static_cast<int64_t>(pc - base);
  auto *after =
      std::upper_bound(first, first + count, wanted, [](int64_t value, const TableEntry &entry) {
        return value < entry.function;
      });
  return after == first ? nullptr : header + (after - 1)->description;
}

} // namespace

std::optional<FunctionRow> findRow(const uint8_t *eh_frame_hdr, ByteRange segment, uintptr_t pc,
                                   const DwarfRegisters &registers) {
  const uint8_t *description = findDescription(eh_frame_hdr, segment, pc);
  if (!description) {
    return std::nullopt;
  }
  DwarfReader reader = entryAt(description, segment);
  const uint8_t *content = reader.position();
  auto distance = reader.number<uint32_t>();
  std::optional<CommonEntry> common = readCommon(content - distance, segment, registers);
  if (!common) {
    return std::nullopt;
  }
  FunctionRow found;
  found.function_start = reader.pointer(common->pointer_encoding, 0);
  uintptr_t length = reader.pointer(common->pointer_encoding & 0x0f, 0);
  if (reader.hasFailed() || pc < found.function_start || pc - found.function_start >= length) {
    return std::nullopt;
  }
  if (common->is_augmented) {
    reader.skip(reader.unsignedLeb());
  }
  CallFrameProgram program(*common, registers, found.function_start, pc);
  if (program.run({reader.position(), reader.end()}) && !reader.hasFailed() &&
      !common->is_signal_frame) {
    found.row = program.row();
  }
  return found;
}

} // namespace deepcontext::unwind
