#pragma once
// Machine code without unwind information, as a JIT compiler makes it, and what such a compiler may
// register for it.
#include <algorithm>
#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unwind_table.h"
#include "unwind/processor.h"

namespace deepcontext::test {

/// A function that calls its argument. Its stack frame has 16 bytes with the return address.
class CallingCode {
public:
  CallingCode() : page_bytes_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    memory_ = static_cast<uint8_t *>(mmap(nullptr, page_bytes_, PROT_READ | PROT_WRITE | PROT_EXEC,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    Bytes code = isAarch64() ? kAarch64 : kX86_64;
    std::copy(code.begin(), code.end(), memory_);
    auto *begin = reinterpret_cast<char *>(memory_);
    __builtin___clear_cache(begin, begin + code.size());
  }
  ~CallingCode() { munmap(memory_, page_bytes_); }
  CallingCode(const CallingCode &) = delete;
  CallingCode &operator=(const CallingCode &) = delete;

  void call(void (*callback)()) const { reinterpret_cast<void (*)(void (*)())>(memory_)(callback); }
  /// Its .eh_frame.
  Bytes table() const {
    auto start = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(memory_));
    auto column = static_cast<uint8_t>(unwind::Processor::kRegisters.return_address);
    // Both change their frame after 4 bytes and again 4 to 8 bytes later. def_cfa_offset 16, with
    // x29 at CFA - 16 and x30 at CFA - 8; then def_cfa_offset 0 and both restored.
    return isAarch64()
               ? frameTable(column, {0x0c, 31, 0},
                            {0x41, 0x0e, 16, 0x9d, 2, 0x9e, 1, 0x42, 0x0e, 0, 0xdd, 0xde}, start,
                            kAarch64.size())
               : frameTable(column, {0x0c, 7, 8, 0x90, 1}, {0x41, 0x0e, 16}, start, kX86_64.size());
  }

private:
  static constexpr bool isAarch64() {
    return unwind::kThisProcessor == unwind::ProcessorKind::kAarch64;
  }
  // sub rsp, 8; call rdi; add rsp, 8; ret
  static inline const Bytes kX86_64{0x48, 0x83, 0xec, 0x08, 0xff, 0xd7,
                                    0x48, 0x83, 0xc4, 0x08, 0xc3};
  // stp x29, x30, [sp, -16]!; blr x0; ldp x29, x30, [sp], 16; ret
  static inline const Bytes kAarch64{0xfd, 0x7b, 0xbf, 0xa9, 0x00, 0x00, 0x3f, 0xd6,
                                     0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};

  size_t page_bytes_;
  uint8_t *memory_;
};

} // namespace deepcontext::test
