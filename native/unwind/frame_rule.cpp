#include "unwind/frame_rule.h"

#include <algorithm>
#include <array>

#include "unwind/dwarf_reader.h"

namespace deepcontext::unwind {

namespace {

// .eh_frame_hdr, as every linker for x86-64 writes it:
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

constexpr uint64_t kRbpRegister = 6, kRspRegister = 7, kReturnColumn = 16;
constexpr size_t kMostRemembered = 16;

enum class Saved : uint8_t { kSame, kAtOffset, kAtRbp, kUndefined, kOdd };

/// One row of the virtual unwinding table, of the columns that matter here.
struct Row {
  bool is_expression = false;
  uint64_t cfa_register = kRspRegister;
  int64_t cfa_offset = 0;
  const uint8_t *expression = nullptr;
  uint64_t expression_bytes = 0;
  Saved rbp = Saved::kSame;
  int64_t rbp_offset = 0;
  Saved return_address = Saved::kSame;
  int64_t return_offset = 0;

  void save(uint64_t column, Saved how, int64_t offset = 0) {
    if (column == kRbpRegister) {
      rbp = how;
      rbp_offset = offset;
    } else if (column == kReturnColumn) {
      return_address = how;
      return_offset = offset;
    }
  }
  void restore(uint64_t column, const Row &initial) {
    if (column == kRbpRegister) {
      save(column, initial.rbp, initial.rbp_offset);
    } else if (column == kReturnColumn) {
      save(column, initial.return_address, initial.return_offset);
    }
  }
  void define(uint64_t column, int64_t offset) {
    is_expression = false;
    cfa_register = column;
    cfa_offset = offset;
  }
};

/// A common information entry: what its functions share.
struct Common {
  uint64_t code_factor = 1;
  int64_t data_factor = 1;
  uint8_t pointer_encoding = 0;
  bool is_augmented = false;
  bool is_signal_frame = false;
  const uint8_t *program = nullptr;
  const uint8_t *end = nullptr;
};

/// Runs call frame instructions up to the row of one address.
class RowMachine {
public:
  RowMachine(const Common &common, uintptr_t start, uintptr_t wanted)
      : common_(common), at_(start), wanted_(wanted) {}

  Row row, initial;

  /// False when an instruction is unknown or the program is cut.
  bool run(const uint8_t *begin, const uint8_t *end) {
    DwarfReader reader(begin, end);
    while (!reader.isAtEnd()) {
      if (!execute(reader) || reader.hasFailed()) {
        return false;
      }
      if (at_ > wanted_) {
        return true;
      }
    }
    return true;
  }

private:
  bool execute(DwarfReader &reader) {
    uint8_t code = reader.byte();
    uint8_t operand = code & 0x3f;
    switch (code & 0xc0) {
    case 0x40: // advance_loc
      advance(operand);
      return true;
    case 0x80: // offset
      saveAt(operand, static_cast<int64_t>(reader.unsignedLeb()));
      return true;
    case 0xc0: // restore
      row.restore(operand, initial);
      return true;
    default:
      return code <= 0x09 ? executeMove(code, reader) : executeDefinition(code, reader);
    }
  }

  bool executeMove(uint8_t code, DwarfReader &reader) {
    switch (code) {
    case 0x00: // nop
      return true;
    case 0x01: // set_loc
      at_ = reader.pointer(common_.pointer_encoding, 0);
      return true;
    case 0x02: // advance_loc1, 2, 4
      advance(reader.number<uint8_t>());
      return true;
    case 0x03:
      advance(reader.number<uint16_t>());
      return true;
    case 0x04:
      advance(reader.number<uint32_t>());
      return true;
    case 0x05: { // offset_extended
      uint64_t column = reader.unsignedLeb();
      saveAt(column, static_cast<int64_t>(reader.unsignedLeb()));
      return true;
    }
    case 0x06: // restore_extended
      row.restore(reader.unsignedLeb(), initial);
      return true;
    case 0x07: // undefined
      row.save(reader.unsignedLeb(), Saved::kUndefined);
      return true;
    case 0x08: // same_value
      row.save(reader.unsignedLeb(), Saved::kSame);
      return true;
    default: // 0x09, register
      row.save(reader.unsignedLeb(), Saved::kOdd);
      reader.unsignedLeb();
      return true;
    }
  }

  bool executeDefinition(uint8_t code, DwarfReader &reader) {
    switch (code) {
    case 0x0a: // remember_state
      if (remembered_count_ == kMostRemembered) {
        return false;
      }
      remembered_[remembered_count_++] = row;
      return true;
    case 0x0b: // restore_state
      if (remembered_count_ == 0) {
        return false;
      }
      row = remembered_[--remembered_count_];
      return true;
    case 0x0c: { // def_cfa
      uint64_t column = reader.unsignedLeb();
      row.define(column, static_cast<int64_t>(reader.unsignedLeb()));
      return true;
    }
    case 0x0d: // def_cfa_register
      row.define(reader.unsignedLeb(), row.cfa_offset);
      return true;
    case 0x0e: // def_cfa_offset
      row.cfa_offset = static_cast<int64_t>(reader.unsignedLeb());
      return true;
    case 0x0f: // def_cfa_expression
      row.is_expression = true;
      row.expression_bytes = reader.unsignedLeb();
      row.expression = reader.skip(row.expression_bytes);
      return true;
    case 0x10: // expression
      saveByExpression(reader);
      return true;
    case 0x11: { // offset_extended_sf
      uint64_t column = reader.unsignedLeb();
      saveAt(column, reader.signedLeb());
      return true;
    }
    case 0x12: { // def_cfa_sf
      uint64_t column = reader.unsignedLeb();
      row.define(column, reader.signedLeb() * common_.data_factor);
      return true;
    }
    case 0x13: // def_cfa_offset_sf
      row.cfa_offset = reader.signedLeb() * common_.data_factor;
      return true;
    case 0x14: // val_offset, val_offset_sf: a number each
    case 0x15:
      row.save(reader.unsignedLeb(), Saved::kOdd);
      reader.unsignedLeb();
      return true;
    case 0x16: // val_expression
      row.save(reader.unsignedLeb(), Saved::kOdd);
      reader.skip(reader.unsignedLeb());
      return true;
    case 0x2e: // GNU_args_size
      reader.unsignedLeb();
      return true;
    default:
      return false;
    }
  }

  /// Functions that realign their stack keep the caller's rbp where rbp points: breg6 0.
  void saveByExpression(DwarfReader &reader) {
    uint64_t column = reader.unsignedLeb();
    uint64_t bytes = reader.unsignedLeb();
    const uint8_t *expression = reader.skip(bytes);
    bool is_at_rbp =
        !reader.hasFailed() && bytes == 2 && expression[0] == 0x76 && expression[1] == 0;
    row.save(column, is_at_rbp ? Saved::kAtRbp : Saved::kOdd);
  }

  void advance(uint64_t steps) { at_ += steps * common_.code_factor; }
  void saveAt(uint64_t column, int64_t factored) {
    row.save(column, Saved::kAtOffset, factored * common_.data_factor);
  }

  const Common &common_;
  uintptr_t at_;
  uintptr_t wanted_;
  std::array<Row, kMostRemembered> remembered_;
  size_t remembered_count_ = 0;
};

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

std::optional<Common> readCommon(const uint8_t *begin, ByteRange segment) {
  DwarfReader reader = entryAt(begin, segment);
  Common common;
  common.end = reader.end();
  reader.number<uint32_t>(); // 0: this is a common information entry
  uint8_t version = reader.byte();
  const char *augmentation = reader.text();
  common.code_factor = reader.unsignedLeb();
  common.data_factor = reader.signedLeb();
  uint64_t return_column = version == 1 ? reader.byte() : reader.unsignedLeb();
  if (reader.hasFailed() || return_column != kReturnColumn) {
    return std::nullopt;
  }
  common.program = reader.position();
  if (*augmentation == 'z') {
    common.is_augmented = true;
    uint64_t length = reader.unsignedLeb();
    const uint8_t *data = reader.skip(length);
    DwarfReader values(data, reader.position());
    for (const char *letter = augmentation + 1; *letter; ++letter) {
      if (*letter == 'R') {
        common.pointer_encoding = values.byte();
      } else if (*letter == 'L') {
        values.byte();
      } else if (*letter == 'P') {
        uint8_t encoding = values.byte();
        values.pointer(encoding & 0x0f, 0);
      } else if (*letter == 'S') {
        common.is_signal_frame = true;
      }
    }
    if (values.hasFailed()) {
      return std::nullopt;
    }
    common.program = reader.position();
  } else if (*augmentation) {
    return std::nullopt;
  }
  return reader.hasFailed() ? std::nullopt : std::optional(common);
}

/// `breg7 n; deref` or `breg6 n; deref`: the one shape of expression that compilers make.
FrameRule ruleOfExpression(const Row &row) {
  FrameRule rule;
  DwarfReader reader(row.expression, row.expression + row.expression_bytes);
  uint8_t base = reader.byte();
  int64_t offset = reader.signedLeb();
  bool is_pointer = reader.byte() == 0x06 && reader.isAtEnd() && !reader.hasFailed();
  if (is_pointer && offset == static_cast<int32_t>(offset) && (base == 0x76 || base == 0x77)) {
    rule.kind = base == 0x76 ? RuleKind::kRbpPointer : RuleKind::kRspPointer;
    rule.cfa_offset = static_cast<int32_t>(offset);
  }
  return rule;
}

FrameRule ruleOf(const Row &row) {
  FrameRule rule;
  if (row.return_address == Saved::kUndefined) {
    rule.kind = RuleKind::kOutermost;
    return rule;
  }
  bool is_usual = row.return_address == Saved::kAtOffset && row.return_offset == -8;
  bool is_rbp_known = row.rbp != Saved::kOdd && row.rbp != Saved::kUndefined &&
                      row.rbp_offset == static_cast<int16_t>(row.rbp_offset);
  if (!is_usual || !is_rbp_known) {
    return rule;
  }
  if (row.is_expression) {
    rule = ruleOfExpression(row);
  } else if (row.cfa_offset == static_cast<int32_t>(row.cfa_offset)) {
    rule.kind = row.cfa_register == kRspRegister   ? RuleKind::kRsp
                : row.cfa_register == kRbpRegister ? RuleKind::kRbp
                                                   : RuleKind::kUnknown;
    rule.cfa_offset = static_cast<int32_t>(row.cfa_offset);
  }
  rule.rbp_offset = row.rbp == Saved::kAtOffset ? static_cast<int16_t>(row.rbp_offset) : 0;
  rule.is_rbp_at_rbp = row.rbp == Saved::kAtRbp;
  return rule;
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

std::optional<FunctionRule> findRule(const uint8_t *eh_frame_hdr, ByteRange segment, uintptr_t pc) {
  const uint8_t *description = findDescription(eh_frame_hdr, segment, pc);
  if (!description) {
    return std::nullopt;
  }
  DwarfReader reader = entryAt(description, segment);
  const uint8_t *content = reader.position();
  auto distance = reader.number<uint32_t>();
  std::optional<Common> common = readCommon(content - distance, segment);
  if (!common) {
    return std::nullopt;
  }
  FunctionRule found;
  found.function_start = reader.pointer(common->pointer_encoding, 0);
  uintptr_t length = reader.pointer(common->pointer_encoding & 0x0f, 0);
  if (reader.hasFailed() || pc < found.function_start || pc - found.function_start >= length) {
    return std::nullopt;
  }
  if (common->is_augmented) {
    reader.skip(reader.unsignedLeb());
  }
  RowMachine machine(*common, found.function_start, pc);
  bool is_run = machine.run(common->program, common->end);
  machine.initial = machine.row;
  is_run = is_run && machine.run(reader.position(), reader.end());
  if (is_run && !reader.hasFailed() && !common->is_signal_frame) {
    found.rule = ruleOf(machine.row);
  }
  return found;
}

} // namespace deepcontext::unwind
