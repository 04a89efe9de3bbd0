#pragma once
// What the fuzz targets have in common.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

/// Called by libFuzzer, or by driver.cpp, with each input.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace deepcontext::fuzz {

inline void require(bool is_true, const char *what) {
  if (!is_true) {
    std::fprintf(stderr, "not so: %s\n", what);
    std::abort();
  }
}

/// Whether Python accepts the text as UTF-8; otherwise the bindings would raise.
inline bool isUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    auto lead = static_cast<uint8_t>(text[i]);
    size_t more = lead < 0x80   ? 0
                  : lead < 0xC2 ? 9
                  : lead < 0xE0 ? 1
                  : lead < 0xF0 ? 2
                  : lead < 0xF5 ? 3
                                : 9;
    if (i + more >= text.size()) {
      return false;
    }
    uint32_t code = more == 0 ? lead : lead & (0x3Fu >> more);
    for (size_t j = 1; j <= more; ++j) {
      auto next = static_cast<uint8_t>(text[i + j]);
      if ((next & 0xC0) != 0x80) {
        return false;
      }
      code = code << 6 | (next & 0x3Fu);
    }
    bool is_overlong = (more == 2 && code < 0x800) || (more == 3 && code < 0x10000);
    if (is_overlong || (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) {
      return false;
    }
    i += more + 1;
  }
  return true;
}

} // namespace deepcontext::fuzz
