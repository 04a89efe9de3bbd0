#include "python/module_table.h"

#include "core/guard.h"
#include "python/interpreter_frame.h"

namespace deepcontext {

namespace {

int runPendingResolve(void *) {
  ModuleTable::instance().resolve();
  return 0;
}

using Stack = std::vector<PyObject *>; // new references, outermost first

/// The modules whose calls are on a thread's stack.
Stack modulesOnStack(PyThreadState *state, const void *call_code) {
  Stack modules;
  for (const InterpreterFrame *frame = innermostFrame(state); frame; frame = callerFrame(frame)) {
    if (frameCode(frame) == call_code && frameFirstLocal(frame)) {
      auto *module = static_cast<PyObject *>(const_cast<void *>(frameFirstLocal(frame)));
      modules.insert(modules.begin(), Py_NewRef(module));
    }
  }
  return modules;
}

/// The stacks of all threads that are calling modules. Makes no Python object, because that may
/// collect garbage, run Python code, and let threads end while their states are read.
std::vector<Stack> allStacks(const void *call_code) {
  std::vector<Stack> stacks;
  for (PyThreadState *state = PyInterpreterState_ThreadHead(PyInterpreterState_Get()); state;
       state = PyThreadState_Next(state)) {
    Stack modules = modulesOnStack(state, call_code);
    if (!modules.empty()) {
      stacks.push_back(std::move(modules));
    }
  }
  return stacks;
}

/// A list of lists, or null with an exception set; takes the references.
PyObject *toLists(const std::vector<Stack> &stacks) {
  PyObject *lists = PyList_New(0);
  for (const Stack &stack : stacks) {
    PyObject *list = PyList_New(static_cast<Py_ssize_t>(stack.size()));
    for (size_t i = 0; i < stack.size(); ++i) {
      if (list) {
        PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), stack[i]);
      } else {
        Py_DECREF(stack[i]);
      }
    }
    if (!list || !lists || PyList_Append(lists, list) != 0) {
      Py_CLEAR(lists);
    }
    Py_XDECREF(list);
  }
  return lists;
}

/// The last part of the type's name. Needs no GIL: the text is a buffer of the type, which the
/// instance keeps alive.
std::string typeName(const void *instance) {
  std::string type = Py_TYPE(static_cast<PyObject *>(const_cast<void *>(instance)))->tp_name;
  size_t dot = type.rfind('.');
  return dot == std::string::npos ? type : type.substr(dot + 1);
}

} // namespace

ModuleTable &ModuleTable::instance() {
  static ModuleTable *const table = new ModuleTable();
  return *table;
}

uint32_t ModuleTable::add(std::string type) {
  instances_.push_back({std::move(type), ""});
  return static_cast<uint32_t>(instances_.size() - 1);
}

uint32_t ModuleTable::sharedId(const std::string &type) {
  auto [place, is_new] = shared_.emplace(type, 0);
  if (is_new) {
    place->second = add(type);
    instances_.back().is_shared = true;
  }
  return place->second;
}

/// An id for an instance with this label: that of a dead instance with the label, or a new one.
uint32_t ModuleTable::labelledId(const std::string &type, const std::string &label) {
  auto spare = spare_.find(label);
  if (spare != spare_.end() && !spare->second.empty()) {
    uint32_t id = spare->second.back();
    spare->second.pop_back();
    instances_[id].is_reused = true;
    return id;
  }
  if (instances_.size() >= kMaxInstances) {
    return sharedId(type);
  }
  uint32_t id = add(type);
  instances_[id].label = label;
  return id;
}

uint32_t ModuleTable::entry(const void *instance) {
  std::string type = typeName(instance);
  uint32_t id;
  {
    std::lock_guard<Mutex> lock(mutex_);
    auto known = by_address_.find(instance);
    if (known != by_address_.end()) {
      if (instances_[known->second].type == type) {
        return known->second;
      }
      forgetLocked(instance); // the old instance died before it had a weak reference
    }
    bool is_shared = instances_.size() >= kMaxInstances || deaths_[type] >= kManyDeaths;
    id = is_shared ? sharedId(type) : add(std::move(type));
    by_address_.emplace(instance, id);
  }
  scheduleResolve();
  return id;
}

std::optional<uint32_t> ModuleTable::find(const void *instance) const {
  std::lock_guard<Mutex> lock(mutex_);
  auto known = by_address_.find(instance);
  return known == by_address_.end() ? std::nullopt : std::optional<uint32_t>(known->second);
}

std::string ModuleTable::label(uint32_t id) const {
  std::lock_guard<Mutex> lock(mutex_);
  if (id >= instances_.size()) {
    return ""; // an id of the last session
  }
  const Instance &instance = instances_[id];
  return instance.label.empty() ? instance.type : instance.label;
}

void ModuleTable::scheduleResolve() {
  if (!is_scheduled_.exchange(true)) {
    if (Py_AddPendingCall(Guarded<runPendingResolve>::call, nullptr) != 0) {
      is_scheduled_.store(false); // the interpreter's queue is full: try again at the next module
    }
  }
}

void ModuleTable::start(PyObject *resolver) {
  Py_XINCREF(resolver);
  Py_XSETREF(resolver_, resolver);
  std::lock_guard<Mutex> lock(mutex_);
  instances_.clear();
  by_address_.clear();
  shared_.clear();
  deaths_.clear();
  spare_.clear();
  epochs_.changeAll();
}

void ModuleTable::resolve() {
  is_scheduled_.store(false);
  const void *call_code = callCode();
  if (!resolver_ || !call_code) {
    return;
  }
  // A pending call may run while an exception is being handled by C code above it.
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject *resolver = Py_NewRef(resolver_);
  PyObject *stacks = toLists(allStacks(call_code));
  PyObject *result = stacks ? PyObject_CallOneArg(resolver, stacks) : nullptr;
  if (!result) {
    PyErr_WriteUnraisable(resolver);
  }
  Py_XDECREF(result);
  Py_XDECREF(stacks);
  Py_DECREF(resolver);
  PyErr_Restore(type, value, traceback);
}

void ModuleTable::name(const void *instance, std::string label) {
  std::string type = typeName(instance);
  std::lock_guard<Mutex> lock(mutex_);
  auto known = by_address_.find(instance);
  if (known != by_address_.end() && instances_[known->second].type != type) {
    forgetLocked(instance); // the old instance died before it had a weak reference
    known = by_address_.end();
  }
  if (known == by_address_.end()) {
    by_address_.emplace(instance, labelledId(type, label));
    return;
  }
  Instance &seen = instances_[known->second];
  if (!seen.is_shared && !seen.is_reused) {
    seen.label = std::move(label); // all data of this id is of this instance
  } else if (seen.label != label) {
    known->second = labelledId(type, label);
    epochs_.change(instance);
  }
}

void ModuleTable::forget(const void *instance) {
  std::lock_guard<Mutex> lock(mutex_);
  forgetLocked(instance);
}

void ModuleTable::forgetLocked(const void *instance) {
  auto known = by_address_.find(instance);
  if (known == by_address_.end()) {
    return;
  }
  const Instance &dead = instances_[known->second];
  if (!dead.is_shared && !dead.label.empty()) {
    spare_[dead.label].push_back(known->second);
  }
  deaths_[dead.type]++;
  by_address_.erase(known);
  epochs_.change(instance);
}

std::vector<uintptr_t> ModuleTable::unnamed() const {
  std::lock_guard<Mutex> lock(mutex_);
  std::vector<uintptr_t> addresses;
  for (const auto &[address, id] : by_address_) {
    if (instances_[id].label.empty()) {
      addresses.push_back(reinterpret_cast<uintptr_t>(address));
    }
  }
  return addresses;
}

void ModuleTable::stop() {
  Py_CLEAR(resolver_);
  std::lock_guard<Mutex> lock(mutex_);
  by_address_.clear();
  epochs_.changeAll();
}

} // namespace deepcontext
