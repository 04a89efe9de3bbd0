#include "python/gradient_search.h"

#include <opcode.h>

#include "python/interpreter_frame.h"

namespace deepcontext {

namespace {

/// Whether a frame is in the middle of setting or deleting an attribute.
bool isSettingAttribute(const InterpreterFrame *frame) {
  auto *code = const_cast<PyCodeObject *>(frameCode(frame));
  // the compiled instructions, not the specialised ones
  PyObject *instructions = PyCode_GetCode(code);
  uint32_t offset = instructionOffset(code, frame->instruction);
  int opcode = -1;
  if (instructions && offset < static_cast<size_t>(PyBytes_GET_SIZE(instructions))) {
    opcode = static_cast<unsigned char>(PyBytes_AS_STRING(instructions)[offset]);
  }
  Py_XDECREF(instructions);
  PyErr_Clear();
  return opcode == STORE_ATTR || opcode == DELETE_ATTR;
}

/// Whether a function's code can set an attribute by a call, as in setattr(parameter, "grad",
/// None).
bool mentionsSetting(const InterpreterFrame *frame) {
  PyObject *names = frameCode(frame)->co_names;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
    for (const char *name :
         {"setattr", "delattr", "__setattr__", "__delattr__", "__set__", "__delete__"}) {
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), name) == 0) {
        return true;
      }
    }
  }
  return false;
}

/// Whether a frame only passes a call on, as modes such as torch.set_default_device() do with each
/// call and each attribute that is set.
bool isPassingOn(const InterpreterFrame *frame) {
  return PyUnicode_CompareWithASCIIString(frameCode(frame)->co_name, "__torch_function__") == 0;
}

/// Other threads' frames do not change, because this thread holds the GIL.
bool isAnyThreadAtGradients(const std::unordered_set<const PyCodeObject *> &backward) {
  PyThreadState *state = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  for (; state; state = PyThreadState_Next(state)) {
    bool may_set = state != PyThreadState_Get();
    for (auto *frame = innermostFrame(state); frame; frame = callerFrame(frame)) {
      if (may_set && (isSettingAttribute(frame) || mentionsSetting(frame))) {
        return true;
      }
      may_set = may_set && isPassingOn(frame);
      if (backward.count(frameCode(frame)) > 0) {
        return true;
      }
    }
  }
  return false;
}

/// The number that a method returns; none when it raises, as for a tensor without memory.
std::optional<uintptr_t> ask(PyObject *tensor, const char *method) {
  PyObject *answer = PyObject_CallMethod(tensor, method, nullptr);
  size_t number = answer ? PyLong_AsSize_t(answer) : 0;
  Py_XDECREF(answer);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return std::nullopt;
  }
  return number;
}

bool hasAddress(PyObject *tensor, const GradientQuestion &question) {
  if (Py_TYPE(tensor) != question.tensor) {
    return false;
  }
  PyObject *layout = PyObject_GetAttrString(tensor, "layout");
  PyObject *is_deferred = PyObject_CallOneArg(question.is_deferred, tensor);
  bool has_address = layout == question.strided && is_deferred == Py_False;
  Py_XDECREF(layout);
  Py_XDECREF(is_deferred);
  PyErr_Clear();
  return has_address;
}

std::optional<uintptr_t> addressOf(PyObject *tensor, const GradientQuestion &question) {
  if (!hasAddress(tensor, question)) {
    return std::nullopt;
  }
  std::optional<uintptr_t> first = ask(tensor, "data_ptr");
  std::optional<uintptr_t> offset = ask(tensor, "storage_offset");
  std::optional<uintptr_t> size = ask(tensor, "element_size");
  if (!first || !*first || !offset || !size) {
    return std::nullopt;
  }
  return *first - *offset * *size;
}

} // namespace

std::optional<std::vector<uintptr_t>> gradientAddresses(PyObject *tensors,
                                                        const GradientQuestion &question) {
  std::vector<uintptr_t> addresses;
  int was_collecting = PyGC_Disable();
  bool is_busy = isAnyThreadAtGradients(question.backward);
  for (Py_ssize_t i = 0; !is_busy && i < PyList_GET_SIZE(tensors); ++i) {
    PyObject *gradient = PyObject_GetAttrString(PyList_GET_ITEM(tensors, i), "grad");
    if (gradient) {
      if (std::optional<uintptr_t> address = addressOf(gradient, question)) {
        addresses.push_back(*address);
      }
      Py_DECREF(gradient);
    }
    PyErr_Clear();
  }
  if (was_collecting) {
    PyGC_Enable();
  }
  return is_busy ? std::nullopt : std::make_optional(std::move(addresses));
}

} // namespace deepcontext
