// A program and a window of the tracer (XSpace) in which it ran: 4 bytes with the size of the
// program, the program, the window. The window is added twice, with a launch for each execution.
#include <cstring>
#include <utility>

#include "fuzz/target.h"
#include "jax/attribution.h"
#include "jax/function_table.h"

using namespace deepcontext;
using deepcontext::fuzz::isUtf8;
using deepcontext::fuzz::require;

namespace {

void addWindow(WithoutGil without_gil, std::string_view bytes, uint32_t function) {
  jax::Attribution &attribution = jax::Attribution::instance();
  jax::TraceWindow window;
  jax::readTraceWindow(bytes, &window);
  std::vector<jax::Launch> launches;
  for (const jax::Execution &execution : window.executions) {
    auto number = static_cast<uint32_t>(launches.size());
    jax::Launch launch;
    launch.start_ns = execution.start_ns;
    launch.end_ns = execution.end_ns;
    launch.thread = execution.line;
    launch.node = {0, number % 3};
    launch.function = function;
    launch.calls = number + 1;
    launch.number = {number, number};
    launches.push_back(launch);
  }
  size_t runs = window.runs.size();
  for (const jax::Run &run : window.runs) {
    require(isUtf8(run.module), "the name of a module is UTF-8");
    for (const auto &[name, times] : run.operations) {
      require(isUtf8(name) && times.count > 0, "operations of a run have names, and ran");
    }
  }
  uint64_t before = attribution.counts(without_gil).runs;
  attribution.addWindow(without_gil, std::move(window), std::move(launches));
  require(attribution.counts(without_gil).runs == before + runs, "all runs are counted");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const uint32_t function = jax::FunctionTable::instance().add("f", "f", "f.py", 1, "f").id;
  WithoutGil without_gil = WithoutGil::onForeignThread();
  jax::Attribution &attribution = jax::Attribution::instance();
  attribution.clear(without_gil);
  jax::Collectives::instance().clear();
  uint32_t program_bytes = 0;
  if (size < sizeof program_bytes) {
    return 0;
  }
  std::memcpy(&program_bytes, data, sizeof program_bytes);
  std::string_view bytes(reinterpret_cast<const char *>(data) + sizeof program_bytes,
                         size - sizeof program_bytes);
  std::string_view hlo = bytes.substr(0, program_bytes);
  jax::Program program;
  std::vector<uint32_t> processes = {0, 0, 0, 0, 1, 1, 1, 1};
  if (jax::buildProgram(hlo, {}, {processes, 1}, /*with_operations=*/true, &program)) {
    attribution.addProgram(without_gil, std::move(program), {function}, 0, "");
  }
  addWindow(without_gil, bytes.substr(hlo.size()), function);
  addWindow(without_gil, bytes.substr(hlo.size()), function);
  attribution.parts();
  attribution.collectives(without_gil);
  jax::Collectives::instance().read();
  return 0;
}
