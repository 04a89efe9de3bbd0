#include "python/callable_names.h"

#include <Python.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "unwind/address_table.h"

namespace deepcontext {

namespace {

/// A reference that is given back at the end of its scope.
class Owned {
public:
  explicit Owned(PyObject *object) : object_(object) {}
  Owned(const Owned &) = delete;
  Owned &operator=(const Owned &) = delete;
  ~Owned() { Py_XDECREF(object_); }
  PyObject *get() const { return object_; }

private:
  PyObject *object_;
};

template <typename Function> uintptr_t addressOf(Function function) {
  return reinterpret_cast<uintptr_t>(function);
}

/// "numpy._core._multiarray_umath.concatenate" -> "numpy.concatenate", "builtins.sorted" ->
/// "sorted": without private parts in the middle, which are an implementation's.
std::string publicName(std::string_view full) {
  std::string name;
  for (size_t begin = 0; begin <= full.size();) {
    size_t end = std::min(full.find('.', begin), full.size());
    std::string_view part = full.substr(begin, end - begin);
    bool is_outer = begin == 0 && end < full.size();
    bool is_shown = is_outer ? part != "builtins" : end == full.size() || part[0] != '_';
    if (is_shown) {
      name += name.empty() ? "" : ".";
      name += part;
    }
    begin = end + 1;
  }
  return name;
}

class CallableNames {
public:
  explicit CallableNames(std::unordered_map<uintptr_t, uint32_t> wanted)
      : wanted_(std::move(wanted)) {}

  void nameAll() {
    // Their slots pass calls on, and other types inherit them.
    for (PyTypeObject *type :
         {&PyBaseObject_Type, &PyType_Type, &PyFunction_Type, &PyMethod_Type, &PyCFunction_Type,
          &PyMethodDescr_Type, &PyClassMethodDescr_Type, &PyWrapperDescr_Type, &PyProperty_Type}) {
      forgetSlots(type);
    }
    addModules();
    Owned list_subclasses(
        PyObject_GetAttrString(reinterpret_cast<PyObject *>(&PyType_Type), "__subclasses__"));
    if (list_subclasses.get()) {
      addTypes(list_subclasses.get());
    }
    PyErr_Clear();
    setNames();
  }

private:
  struct Name {
    std::string full, last;
    bool is_shared = false;
  };

  void add(uintptr_t function, std::string_view owner, std::string_view name) {
    if (!function || wanted_.find(function) == wanted_.end()) {
      return;
    }
    Name &known = names_[function];
    if (known.full.empty()) {
      known.full = owner;
      known.full += name.empty() || owner.empty() ? "" : ".";
      known.full += name;
      known.last = name;
    }
    known.is_shared = known.is_shared || known.last != name;
  }

  /// A function of several names serves them all, as pybind11's does, and has none itself.
  void setNames() {
    for (const auto &[function, name] : names_) {
      if (!name.is_shared) {
        unwind::AddressTable::instance().setCallable(wanted_[function], publicName(name.full));
      }
    }
  }

  void addModules() {
    PyObject *modules = PyImport_GetModuleDict(); // borrowed
    PyObject *key = nullptr, *module = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(modules, &at, &key, &module);) {
      if (!PyModule_Check(module) || !PyUnicode_Check(key)) {
        continue;
      }
      PyObject *name = nullptr, *value = nullptr;
      for (Py_ssize_t in = 0; PyDict_Next(PyModule_GetDict(module), &in, &name, &value);) {
        if (PyCFunction_Check(value)) {
          addFunction(value);
        }
      }
    }
  }

  /// Of a module, or a static method of a type: its own names, not those it was imported under.
  void addFunction(PyObject *function) {
    auto *object = reinterpret_cast<PyCFunctionObject *>(function);
    const char *module = object->m_module && PyUnicode_Check(object->m_module)
                             ? PyUnicode_AsUTF8(object->m_module)
                             : "";
    PyErr_Clear(); // of a name that is no text
    add(addressOf(object->m_ml->ml_meth), module ? module : "", object->m_ml->ml_name);
  }

  /// Base types first, so that an inherited function has its own type's name.
  void addTypes(PyObject *list_subclasses) {
    std::vector<PyObject *> types{reinterpret_cast<PyObject *>(&PyBaseObject_Type)};
    std::unordered_set<PyObject *> seen(types.begin(), types.end());
    Py_INCREF(types[0]);
    for (size_t i = 0; i < types.size(); ++i) {
      addType(reinterpret_cast<PyTypeObject *>(types[i]));
      Owned subclasses(PyObject_CallOneArg(list_subclasses, types[i]));
      Py_ssize_t count = subclasses.get() ? PyList_GET_SIZE(subclasses.get()) : 0;
      for (Py_ssize_t j = 0; j < count; ++j) {
        PyObject *type = PyList_GET_ITEM(subclasses.get(), j);
        if (PyType_Check(type) && seen.insert(type).second) {
          Py_INCREF(type);
          types.push_back(type);
        }
      }
    }
    for (PyObject *type : types) {
      Py_DECREF(type);
    }
  }

  static bool isOfPython(PyTypeObject *type) {
    return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && !type->tp_methods &&
           reinterpret_cast<PyHeapTypeObject *>(type)->ht_cached_keys;
  }

  template <typename Use> static void forEachAttribute(PyTypeObject *type, Use use) {
#if PY_VERSION_HEX >= 0x030c0000
    Owned dict(PyType_GetDict(type));
#else
    Owned dict(Py_XNewRef(type->tp_dict));
#endif
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; dict.get() && PyDict_Next(dict.get(), &at, &key, &value);) {
      use(value);
    }
  }

  static uintptr_t slotOf(PyObject *attribute) {
    return PyObject_TypeCheck(attribute, &PyWrapperDescr_Type)
               ? addressOf(reinterpret_cast<PyWrapperDescrObject *>(attribute)->d_wrapped)
               : 0;
  }

  void forgetSlots(PyTypeObject *type) {
    forEachAttribute(type, [&](PyObject *value) { wanted_.erase(slotOf(value)); });
    for (uintptr_t slot :
         {addressOf(type->tp_vectorcall), addressOf(type->tp_init), addressOf(type->tp_new)}) {
      wanted_.erase(slot);
    }
  }

  void addType(PyTypeObject *type) {
    if (isOfPython(type)) {
      return; // defines no native function
    }
    forEachAttribute(type, [&](PyObject *value) { addAttribute(type, value); });
    // The slots of a class made in Python are the interpreter's, for all such classes.
    if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || type->tp_methods) {
      addSlot(type, addressOf(type->tp_vectorcall), "");
      addSlot(type, addressOf(type->tp_new), "");
    }
  }

  void addAttribute(PyTypeObject *type, PyObject *value) {
    if (PyObject_TypeCheck(value, &PyMethodDescr_Type) ||
        PyObject_TypeCheck(value, &PyClassMethodDescr_Type)) {
      const PyMethodDef *method = reinterpret_cast<PyMethodDescrObject *>(value)->d_method;
      add(addressOf(method->ml_meth), type->tp_name, method->ml_name);
    } else if (uintptr_t slot = slotOf(value)) {
      addSlot(type, slot, reinterpret_cast<PyWrapperDescrObject *>(value)->d_base->name);
    } else if (PyObject_TypeCheck(value, &PyGetSetDescr_Type)) {
      const PyGetSetDef *property = reinterpret_cast<PyGetSetDescrObject *>(value)->d_getset;
      add(addressOf(property->get), type->tp_name, property->name);
    } else if (PyCFunction_Check(value)) {
      addFunction(value);
    }
  }

  /// One slot has the names of an operation and of its reflected form, or of all comparisons.
  void addSlot(PyTypeObject *type, uintptr_t slot, const char *name) {
    bool is_comparison = slot == addressOf(type->tp_richcompare);
    if (names_.find(slot) == names_.end()) {
      add(slot, type->tp_name, is_comparison ? "comparison" : name);
    }
  }

  std::unordered_map<uintptr_t, uint32_t> wanted_;
  std::unordered_map<uintptr_t, Name> names_;
};

} // namespace

void hideOwnObjects() {
  unwind::AddressTable &table = unwind::AddressTable::instance();
  table.hide(addressOf(&PyObject_Call));
  table.hide(addressOf(&hideOwnObjects));
}

void nameCallables() {
  std::unordered_map<uintptr_t, uint32_t> wanted =
      unwind::AddressTable::instance().takeNewAddresses();
  if (!wanted.empty()) {
    CallableNames(std::move(wanted)).nameAll();
  }
}

} // namespace deepcontext
