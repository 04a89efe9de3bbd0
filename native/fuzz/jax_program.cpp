// A serialised HloModuleProto. The last byte chooses the processes on which the devices are.
#include <algorithm>
#include <vector>

#include "core/interner.h"
#include "fuzz/target.h"
#include "jax/program.h"

using namespace deepcontext;
using deepcontext::fuzz::isUtf8;
using deepcontext::fuzz::require;

namespace {

void check(const jax::Operation &operation, const jax::Program &program,
           const jax::Placement &placement) {
  const Interner &interner = Interner::instance();
  for (std::string_view text :
       {std::string_view(operation.name), std::string_view(operation.op_name), operation.opcode,
        operation.detail, operation.primitive, operation.shape}) {
    require(isUtf8(text), "texts are UTF-8");
  }
  for (const jax::SourceLine &line : operation.lines) {
    require(isUtf8(interner.text(line.file)) && isUtf8(interner.text(line.function)),
            "names in source lines are UTF-8");
  }
  for (uint32_t nested : operation.nested) {
    require(nested < program.operations.size(), "nested operations exist");
  }
  const std::vector<uint32_t> &processes = operation.processes;
  require(std::is_sorted(processes.begin(), processes.end()), "processes ascend");
  require(processes.empty() || std::count(processes.begin(), processes.end(), placement.own) == 1,
          "a process exchanges with itself");
  require(processes.empty() || !operation.is_exchange_of_unknown, "an exchange is known or not");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  jax::Placement placement;
  switch (size > 0 ? data[size - 1] % 4 : 0) {
  case 1:
    placement = {{0, 1}, 1};
    break;
  case 2:
    placement = {{0, 0, 0, 0, 1, 1, 1, 1}, 1};
    break;
  case 3:
    placement = {{0, 1, 2, 3, 4, 5, 6, 7}, 3};
    break;
  default:
    break;
  }
  jax::Program program;
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  if (jax::buildProgram(bytes, {}, placement, /*with_operations=*/true, &program)) {
    require(isUtf8(program.module), "the name of a module is UTF-8");
    for (const jax::Operation &operation : program.operations) {
      check(operation, program, placement);
    }
    for (const auto &[name, index] : program.by_name) {
      require(index < program.operations.size(), "named operations exist");
    }
  }
  return 0;
}
