// A part of a loaded object with its unwind table: 4 bytes with the place of .eh_frame_hdr in the
// part, 4 bytes with a place whose caller is looked up, the part. Also taken for a run of ELF notes
// and for the name of a symbol.
#include <cstring>
#include <string>

#include "fuzz/target.h"
#include "unwind/build_id.h"
#include "unwind/frame_row.h"
#include "unwind/processor.h"
#include "unwind/readable_name.h"

using namespace deepcontext::unwind;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  constexpr size_t kMostName = 512;
  uint32_t places[2] = {};
  buildIdIn(data, size);
  readableName(
      std::string(reinterpret_cast<const char *>(data), size < kMostName ? size : kMostName));
  if (size < sizeof places) {
    return 0;
  }
  std::memcpy(places, data, sizeof places);
  data += sizeof places;
  size -= sizeof places;
  if (places[0] < size) {
    findRow(data + places[0], {data, data + size}, reinterpret_cast<uintptr_t>(data) + places[1],
            Processor::kRegisters);
  }
  return 0;
}
