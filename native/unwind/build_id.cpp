#include "unwind/build_id.h"

#include <cstring>
#include <elf.h>

namespace deepcontext::unwind {

namespace {

std::string hexadecimal(const uint8_t *bytes, size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

} // namespace

std::string buildIdIn(const uint8_t *notes, size_t bytes) {
  constexpr uint64_t kAlignment = 4;
  auto padded = [](uint64_t size) { return (size + kAlignment - 1) & ~(kAlignment - 1); };
  uint64_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= bytes) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes + at, sizeof note);
    uint64_t name = at + sizeof note;
    uint64_t content = name + padded(note.n_namesz);
    if (content + note.n_descsz > bytes) {
      return "";
    }
    bool is_gnu = note.n_namesz == 4 && std::memcmp(notes + name, "GNU", 4) == 0;
    if (is_gnu && note.n_type == NT_GNU_BUILD_ID) {
      return hexadecimal(notes + content, note.n_descsz);
    }
    at = content + padded(note.n_descsz);
  }
  return "";
}

} // namespace deepcontext::unwind
