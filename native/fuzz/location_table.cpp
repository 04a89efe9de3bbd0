// The location table of a Python code object.
#include "python/location_table.h"
#include "fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view table(reinterpret_cast<const char *>(data), size);
  for (uint32_t offset : {0u, 2u, 64u, 1000u, 1u << 20, UINT32_MAX}) {
    deepcontext::lineOfInstruction(table, 7, offset);
  }
  return 0;
}
