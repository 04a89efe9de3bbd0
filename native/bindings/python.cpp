// Python call paths, code objects, modules and the watcher, as Python sees them (typed in
// _native.pyi).
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <map>

#include "bindings/bindings.h"
#include "bindings/text.h"
#include "core/guard.h"
#include "core/internal_thread.h"
#include "python/code_table.h"
#include "python/exit_status.h"
#include "python/frame_walk.h"
#include "python/gc_pauses.h"
#include "python/gradient_search.h"
#include "python/holder_search.h"
#include "python/location_table.h"
#include "python/module_calls.h"
#include "python/module_table.h"
#include "python/object_search.h"
#include "python/operations.h"
#include "python/python_thread.h"
#include "python/watched_call.h"
#include "python/watcher.h"

namespace nb = nanobind;

namespace deepcontext {

namespace {

CodeRole roleOf(const std::string &name) {
  static const std::map<std::string, CodeRole> roles = {
      {"hidden", CodeRole::kHidden},
      {"scope_plumbing", CodeRole::kScopePlumbing},
      {"module_call", CodeRole::kModuleCall},
      {"folded", CodeRole::kFolded},
  };
  auto found = roles.find(name);
  if (found == roles.end()) {
    throw nb::value_error("role is not one of hidden, scope_plumbing, module_call, folded");
  }
  return found->second;
}

CodeRule::FileMatch matchOf(const std::string &name) {
  if (name == "exact") {
    return CodeRule::FileMatch::kExact;
  }
  if (name == "prefix") {
    return CodeRule::FileMatch::kPrefix;
  }
  if (name == "suffix") {
    return CodeRule::FileMatch::kSuffix;
  }
  throw nb::value_error("match is not one of exact, prefix, suffix");
}

nb::list walkCurrentFrames() {
  nb::list frames;
  for (auto [code, offset] : walkForCheck()) {
    auto *object = reinterpret_cast<PyObject *>(const_cast<PyCodeObject *>(code));
    frames.append(nb::make_tuple(nb::borrow(object), offset));
  }
  return frames;
}

PyObject *orThrow(PyObject *result) {
  if (!result) {
    nb::raise_python_error();
  }
  return result;
}

void bindFrames(nb::module_ &module) {
  module.def("add_code_rule", [](const std::string &match, const std::string &file,
                                 const std::string &qualified_name, const std::string &role,
                                 const std::string &marker) {
    CodeTable::instance().addRule({matchOf(match), file, qualified_name, roleOf(role), marker});
  });
  module.def("watch_code", [] {
    return reasonOf([](auto *reason) { return CodeTable::instance().watch(reason); });
  });
  module.def("unwatch_code", [] { CodeTable::instance().unwatch(); });
  module.def("walk_current_frames", walkCurrentFrames);
  module.def("line_of_instruction", [](nb::bytes table, int first_line, uint32_t offset) {
    return lineOfInstruction({table.c_str(), table.size()}, first_line, offset);
  });
  module.def("set_module_call", [](nb::object code) {
    // Kept alive forever, because frames are compared with its address.
    ModuleTable::setCallCode(code.is_none() ? nullptr : code.inc_ref().ptr());
  });
  module.def("watch_module_calls", [](nb::object function) { ModuleCalls::watch(function.ptr()); });
  module.def("unwatch_module_calls", [] { ModuleCalls::unwatch(); });
  module.def(
      "set_module_resolver",
      [](nb::object resolver) { ModuleTable::instance().start(orNull(resolver)); },
      nb::arg("resolver").none());
  module.def("resolve_modules", [] { ModuleTable::instance().resolve(); });
  module.def("name_module", [](uintptr_t address, std::string label) {
    ModuleTable::instance().name(reinterpret_cast<const void *>(address), std::move(label));
  });
  module.def("forget_module", [](uintptr_t address) {
    ModuleTable::instance().forget(reinterpret_cast<const void *>(address));
  });
  module.def("unnamed_modules", [] { return ModuleTable::instance().unnamed(); });
  module.def("objects_at", [](const std::vector<uintptr_t> &addresses) {
    return nb::steal<nb::list>(orThrow(objectsAt({addresses.begin(), addresses.end()})));
  });
  module.def("gradient_addresses", [](nb::list tensors, nb::type_object tensor, nb::object strided,
                                      nb::object is_deferred, const nb::args &backward) {
    GradientQuestion question{
        reinterpret_cast<PyTypeObject *>(tensor.ptr()), strided.ptr(), is_deferred.ptr(), {}};
    for (nb::handle code : backward) {
      question.backward.insert(reinterpret_cast<const PyCodeObject *>(code.ptr()));
    }
    return gradientAddresses(tensors.ptr(), question);
  });
  module.def("objects_of", [](const nb::args &types) {
    std::unordered_set<const PyTypeObject *> wanted;
    for (nb::handle type : types) {
      wanted.insert(reinterpret_cast<const PyTypeObject *>(nb::cast<nb::type_object>(type).ptr()));
    }
    return nb::steal<nb::list>(orThrow(objectsOf(wanted)));
  });
  module.def("clear_modules", [] { ModuleTable::instance().stop(); });
}

nb::tuple tensorHolders(nb::type_object tensor, size_t fewest, size_t most, double seconds) {
  SearchLimit limit{seconds};
  nb::list rows;
  for (const Holder &holder :
       findHolders(reinterpret_cast<PyTypeObject *>(tensor.ptr()), fewest, most, &limit)) {
    rows.append(nb::make_tuple(nb::steal(holder.object), holder.tensors));
  }
  return nb::make_tuple(rows, !limit.is_exceeded);
}

nb::list tensorsOf(nb::handle holder, nb::type_object tensor, size_t stride, size_t most) {
  nb::list rows;
  for (PyObject *each :
       tensorsIn(holder.ptr(), reinterpret_cast<PyTypeObject *>(tensor.ptr()), stride, most)) {
    rows.append(nb::steal(each));
  }
  return rows;
}

nb::tuple objectReferrers(nb::list targets, size_t most, double seconds) {
  SearchLimit limit{seconds};
  nb::list rows;
  for (auto [target, referrer] : findReferrers(targets.ptr(), most, &limit)) {
    rows.append(nb::make_tuple(target, nb::steal(referrer)));
  }
  return nb::make_tuple(rows, !limit.is_exceeded);
}

nb::list holdingVariables(nb::list targets) {
  nb::list rows;
  for (const HoldingVariable &variable : findVariables(targets.ptr())) {
    auto *code = reinterpret_cast<PyObject *>(const_cast<PyCodeObject *>(variable.code));
    rows.append(nb::make_tuple(variable.target, nb::borrow(code), nb::steal(variable.name)));
  }
  return rows;
}

/// Called by the garbage collector; an error would be printed in the program.
void noteGc(nb::handle phase, nb::handle /*info*/) {
  const char *text = PyUnicode_Check(phase.ptr()) ? PyUnicode_AsUTF8(phase.ptr()) : nullptr;
  guarded([&] {
    if (text && std::strcmp(text, "start") == 0) {
      GcPauses::started();
    } else if (text && std::strcmp(text, "stop") == 0) {
      GcPauses::stopped();
    }
  });
}

void bindHolders(nb::module_ &module) {
  module.def("note_gc", noteGc);
  module.def("tensor_holders", tensorHolders);
  module.def("tensors_of", tensorsOf);
  module.def("object_referrers", objectReferrers);
  module.def("holding_variables", holdingVariables);
}

void bindWatcher(nb::module_ &module) {
  module.def("start_watcher",
             [](nb::object callback, double first_seconds, double interval_seconds) {
               Watcher::instance().start(callback.ptr(), first_seconds, interval_seconds);
             });
  module.def("set_watcher_interval",
             [](double seconds) { Watcher::instance().setInterval(seconds); });
  module.def("stop_watcher", [] { Watcher::instance().stop(); });
  module.def("watcher_threads_refused", [] { return Watcher::instance().threadsRefused(); });
  module.def("set_exit_status", setExitStatus);
  module.def("pause_watcher", [] { ForkPause::instance().pause(); });
  module.def("resume_watcher", [] { ForkPause::instance().resume(); });
}

void bindOperations(nb::module_ &module) {
  module.def(
      "run_operation",
      [](nb::callable work, bool is_exclusive) {
        PyObject *result = Operations::instance().run(work.ptr(), is_exclusive);
        if (!result) {
          throw nb::python_error();
        }
        return nb::steal(result);
      },
      nb::arg("work"), nb::arg("is_exclusive") = false);
  module.def("try_operation", [](nb::callable work) {
    PyObject *result = Operations::instance().tryHere(work.ptr());
    if (!result) {
      throw nb::python_error();
    }
    return nb::steal(result);
  });
  module.def("is_in_operation", [] { return Operations::instance().isInsideExclusive(); });
  module.def("waits_for_operation",
             [](unsigned long thread) { return Operations::instance().isWaiting(thread); });
}

void bindThreads(nb::module_ &module) {
  nb::class_<PythonThread>(module, "PythonThread")
      .def(nb::init<>())
      .def("start_as_internal",
           [](PythonThread &thread, nb::callable work) {
             InternalThreadInheritance inherited;
             return thread.start(work.ptr());
           })
      .def("start_as_caller",
           [](PythonThread &thread, nb::callable work) {
             Operations::AsCaller as_caller;
             return thread.start(work.ptr());
           })
      .def("join", [](const PythonThread &thread, double seconds) { return thread.join(seconds); });
}

void bindWatchedCall(nb::module_ &module) {
  if (!makeWatchedCallType()) {
    nb::raise_python_error();
  }
  module.def(
      "watched_call",
      [](nb::object called, nb::object before, nb::object after) {
        return nb::steal(orThrow(watchedCall(called.ptr(), orNull(before), orNull(after))));
      },
      nb::arg("called"), nb::arg("before") = nb::none(), nb::arg("after") = nb::none());
}

} // namespace

void bindPython(nb::module_ &module) {
  bindWatchedCall(module);
  bindFrames(module);
  bindHolders(module);
  bindWatcher(module);
  bindOperations(module);
  bindThreads(module);
}

} // namespace deepcontext
