#pragma once
// Copies objects from memory that may be changing or unmapped, with one system call a page.
#include <cstdint>
#include <cstring>

#include "core/memory_reader.h"

namespace deepcontext {

/// Copies whole pages, because the frames of a thread are adjacent.
///
/// No address can fault (see `MemoryReader`): small, misaligned, not canonical, the kernel's, past
/// a mapped file's end, unmapped meanwhile, or an object that runs past the end of the address
/// space. Async-signal-safe; one thread at a time. 16 KiB: too large for the stack of a signal
/// handler.
class PageReader {
public:
  /// Drop all pages; read through `memory` from now on.
  void begin(const MemoryReader *memory) {
    memory_ = memory;
    for (Page &page : pages_) {
      page.address = kNoPage;
    }
  }

  /// Copy the object at an address; false when it cannot be read.
  template <typename Value> bool copy(const void *address, Value *value) {
    auto from = reinterpret_cast<uintptr_t>(address);
    if (from % alignof(Value) != 0) {
      return false; // no pointer to such an object
    }
    auto *to = reinterpret_cast<char *>(value);
    for (size_t left = sizeof(Value); left > 0;) {
      const char *page = pageAt(from - from % kPageBytes);
      if (!page) {
        return false;
      }
      size_t bytes = kPageBytes - from % kPageBytes;
      bytes = bytes < left ? bytes : left;
      std::memcpy(to, page + from % kPageBytes, bytes);
      from += bytes; // wraps to 0 at the end of the address space, where no page can be read
      to += bytes;
      left -= bytes;
    }
    return true;
  }

  /// Copy at most `bytes` bytes from an address on; returns how many, up to the first page that
  /// cannot be read.
  uint32_t copyBytes(uintptr_t from, uint32_t bytes, char *to) const {
    uint32_t copied = 0;
    while (memory_ && copied < bytes) {
      uint32_t to_page = static_cast<uint32_t>(kPageBytes - (from + copied) % kPageBytes);
      uint32_t part = to_page < bytes - copied ? to_page : bytes - copied;
      if (!memory_->read(reinterpret_cast<const void *>(from + copied), to + copied, part)) {
        break;
      }
      copied += part;
    }
    return copied;
  }

private:
  // No machine has smaller pages, so each of these is readable as a whole or not at all.
  static constexpr uintptr_t kPageBytes = 4096;
  static constexpr uintptr_t kNoPage = 1; // no page begins there
  // For a walk: the thread's state, two pages of the interpreter's stack and one of the C stack.
  static constexpr uint32_t kPages = 4;

  struct Page {
    uintptr_t address = kNoPage;
    char bytes[kPageBytes];
  };

  /// The content of a page, or null.
  const char *pageAt(uintptr_t address) {
    for (const Page &page : pages_) {
      if (page.address == address) {
        return page.bytes;
      }
    }
    Page &page = pages_[next_++ % kPages];
    page.address = kNoPage;
    if (!memory_ ||
        !memory_->read(reinterpret_cast<const void *>(address), page.bytes, kPageBytes)) {
      return nullptr;
    }
    page.address = address;
    return page.bytes;
  }

  const MemoryReader *memory_ = nullptr;
  uint32_t next_ = 0;
  Page pages_[kPages];
};

} // namespace deepcontext
