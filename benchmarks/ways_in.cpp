// Ways to observe PyTorch's operators, each doing nothing: what is left is what PyTorch takes for it.
// Compiled by `ways_in.py`.

#include <memory>
#include <string>

#include <ATen/record_function.h>
#include <torch/extension.h>
#include <torch/library.h>

namespace {

using Context = std::unique_ptr<at::ObserverContext>;

Context begin(const at::RecordFunction &) { return nullptr; }
void end(const at::RecordFunction &, at::ObserverContext *) {}

at::CallbackHandle g_handle = 0;
std::unique_ptr<c10::impl::IncludeDispatchKeyGuard> g_mode;

void passBoxed(const c10::OperatorHandle &handle, torch::jit::Stack *stack) {
  c10::impl::ExcludeDispatchKeyGuard guard(c10::DispatchKey::TESTING_ONLY_GenericMode);
  handle.callBoxed(stack);
}

void start(const std::string &way) {
  using Scope = at::RecordScope;
  if (way == "dispatch key, boxed") {
    g_mode = std::make_unique<c10::impl::IncludeDispatchKeyGuard>(
        c10::DispatchKey::TESTING_ONLY_GenericMode);
    return;
  }
  at::RecordFunctionCallback callback(&begin, way == "beginnings only" ? nullptr : &end);
  callback.scopes({Scope::FUNCTION, Scope::BACKWARD_FUNCTION, Scope::USER_SCOPE});
  if (way == "scopes of users only") {
    callback.scopes({Scope::USER_SCOPE});
  }
  callback.needsInputs(way == "with inputs");
  callback.samplingProb(way == "one call in 100" ? 0.01 : 1.0);
  g_handle = way == "callbacks of a thread" ? at::addThreadLocalCallback(callback)
                                            : at::addGlobalCallback(callback);
}

void stop(const std::string &way) {
  if (way == "dispatch key, boxed") {
    g_mode.reset();
  } else {
    at::removeCallback(g_handle);
  }
}

} // namespace

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&passBoxed>());
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("start", &start);
  module.def("stop", &stop);
}
