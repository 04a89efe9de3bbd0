#include "unwind/frame_row.h"

#include <random>
#include <sys/mman.h>
#include <unistd.h>

#include "core/memory_reader.h"
#include "tests/check.h"
#include "unwind/loaded_objects.h"
#include "unwind/processor.h"

using namespace deepcontext::unwind;

namespace {

const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

__attribute__((noinline)) int aFunction(int x) {
  return x * 3;
}

/// A place in the function that calls this.
__attribute__((noinline)) const void *returnAddress() {
  return __builtin_return_address(0);
}

/// The unwind information of this program, copied to where the next page cannot be read.
class Copy {
public:
  explicit Copy(const LoadedObject &object)
      : bytes_(static_cast<size_t>(object.eh_frame_segment.end - object.eh_frame_segment.begin)),
        room_((bytes_ + kPage - 1) / kPage * kPage),
        memory_(static_cast<uint8_t *>(mmap(nullptr, room_ + kPage, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    mprotect(memory_ + room_, kPage, PROT_NONE);
    constexpr size_t kAlignment = 16;
    begin_ = memory_ + room_ - (bytes_ + kAlignment - 1) / kAlignment * kAlignment;
    // Not by memcpy(): AddressSanitizer puts red zones between constants in the same segment.
    CHECK(deepcontext::MemoryReader().read(object.eh_frame_segment.begin, begin_, bytes_));
    header_ = begin_ + (object.eh_frame_hdr - object.eh_frame_segment.begin);
    distance_ = begin_ - object.eh_frame_segment.begin;
  }
  ~Copy() { munmap(memory_, room_ + kPage); }
  Copy(const Copy &) = delete;
  Copy &operator=(const Copy &) = delete;

  std::optional<FunctionRow> find(const void *code) const {
    return findRow(header_, {begin_, begin_ + bytes_},
                   reinterpret_cast<uintptr_t>(code) + static_cast<uintptr_t>(distance_),
                   Processor::kRegisters);
  }
  /// A byte of the unwind information.
  uint8_t &byte(size_t place) {
    size_t most = static_cast<size_t>(begin_ + bytes_ - header_);
    return header_[place % most];
  }

private:
  size_t bytes_;
  size_t room_;
  uint8_t *memory_;
  uint8_t *begin_;
  uint8_t *header_;
  ptrdiff_t distance_;
};

LoadedObject ownObject() {
  LoadedObjects objects;
  objects.refresh();
  const LoadedObject *own = objects.find(reinterpret_cast<uintptr_t>(&aFunction));
  CHECK(own != nullptr && own->eh_frame_hdr != nullptr && own->eh_frame_segment.begin != nullptr);
  return own ? *own : LoadedObject();
}

const uint8_t *inside(const void *code) {
  return static_cast<const uint8_t *>(code) + 1;
}

} // namespace

TEST(a_row_is_found_in_a_copy_of_the_table) {
  Copy copy(ownObject());
  auto found = copy.find(static_cast<const uint8_t *>(returnAddress()) - 1);
  CHECK(found.has_value());
  CHECK(found && Processor::ruleOf(found->row).kind != RuleKind::kUnknown);
}

TEST(a_table_of_garbage_leads_nowhere_else) {
  LoadedObject own = ownObject();
  std::mt19937 random(7);
  const void *code[] = {reinterpret_cast<const void *>(&aFunction),
                        reinterpret_cast<const void *>(&ownObject),
                        reinterpret_cast<const void *>(&inside)};
  for (int turn = 0; turn < 300; ++turn) {
    Copy copy(own);
    // The header, whose numbers lead to all else, is hit every time.
    copy.byte(4 + random() % 8) = static_cast<uint8_t>(random());
    for (int i = 0; i < 2000; ++i) {
      copy.byte(12 + random()) = static_cast<uint8_t>(random());
    }
    for (const void *function : code) {
      copy.find(inside(function));
    }
  }
}

TEST(a_header_outside_its_segment_has_no_row) {
  LoadedObject own = ownObject();
  CHECK(!findRow(own.eh_frame_hdr, {}, reinterpret_cast<uintptr_t>(&aFunction),
                 Processor::kRegisters));
}

TEST(an_offset_that_does_not_fit_is_no_undefined_behaviour) {
  CommonEntry common;
  common.data_factor = INT64_MIN;
  // offset_extended_sf, def_cfa_sf and def_cfa_offset_sf of 63 each
  const uint8_t program[] = {0x11, 16, 0x3f, 0x12, 7, 0x3f, 0x13, 0x3f};
  const DwarfRegisters registers{6, 7, 16, false};
  CallFrameProgram run(common, registers, 0, 100);
  CHECK(run.run({program, program + sizeof program}));
  CHECK_EQ(run.row().cfa_offset, INT64_MIN); // an odd multiple wraps to it
  CHECK_EQ(run.row().return_address.offset, INT64_MIN);
}
