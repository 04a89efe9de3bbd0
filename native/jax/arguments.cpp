#include "jax/arguments.h"

#include "core/metric_registry.h"
#include "jax/repeated_arguments.h"

namespace deepcontext::jax {

std::array<PyTypeObject *, 2> g_host_array_types{};

namespace {

constexpr int kMaxSignatureDepth = 32;
constexpr uint64_t kNumberBytes = 16;
constexpr Py_ssize_t kMostEntries = 8; // of a container: batches are small, parameters are not

/// Bytes of host arrays.
struct HostBytes {
  uint64_t copied = 0;
  uint64_t repeated = 0; // part of it that an earlier call copied, too
};

/// Holds a reference to an entry of a container while its attributes are read, because that may run
/// code of the program, here or on another thread, which removes the entry.
class Held {
public:
  explicit Held(PyObject *object) : object_(Py_NewRef(object)) {}
  ~Held() { Py_DECREF(object_); }
  Held(const Held &) = delete;
  Held &operator=(const Held &) = delete;
  PyObject *get() const { return object_; }

private:
  PyObject *object_;
};

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15u + (hash << 6) + (hash >> 2);
  return hash * 0xBF58476D1CE4E5B9u;
}

uint64_t hashOrZero(PyObject *object) {
  Py_hash_t hash = PyObject_Hash(object);
  if (hash == -1) {
    PyErr_Clear();
    return 0;
  }
  return static_cast<uint64_t>(hash);
}

/// Add `object.name` to the hash; false when it has no such attribute.
bool mixAttribute(PyObject *object, const char *name, uint64_t *hash) {
  PyObject *value = PyObject_GetAttrString(object, name);
  if (!value) {
    PyErr_Clear();
    return false;
  }
  *hash = mix(*hash, hashOrZero(value));
  Py_DECREF(value);
  return true;
}

uint64_t mixArgument(uint64_t hash, PyObject *argument, int depth) {
  if (depth > kMaxSignatureDepth) {
    return hash;
  }
  if (PyTuple_Check(argument) || PyList_Check(argument)) {
    Py_ssize_t size = PySequence_Fast_GET_SIZE(argument);
    hash = mix(hash, static_cast<uint64_t>(size));
    for (Py_ssize_t i = 0; i < size && i < PySequence_Fast_GET_SIZE(argument); ++i) {
      Held entry(PySequence_Fast_GET_ITEM(argument, i));
      hash = mixArgument(hash, entry.get(), depth + 1);
    }
    return hash;
  }
  if (PyDict_Check(argument)) { // jax sorts keys: the order of insertion must not matter
    uint64_t sum = 0;
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(argument, &position, &key, &value)) {
      Held held_key(key), held_value(value);
      sum += mixArgument(mix(0, hashOrZero(key)), value, depth + 1);
    }
    return mix(hash, sum);
  }
  if (PyFloat_Check(argument) || PyLong_Check(argument) || PyComplex_Check(argument)) {
    return mix(hash,
               reinterpret_cast<uintptr_t>(Py_TYPE(argument))); // a value, unless it is static
  }
  PyObject *aval = PyObject_GetAttrString(argument, "aval");
  if (!aval) {
    PyErr_Clear();
  }
  PyObject *shaped = aval ? aval : argument;
  uint64_t inner = hash;
  bool is_array = mixAttribute(shaped, "shape", &inner) && mixAttribute(shaped, "dtype", &inner);
  if (is_array) {
    mixAttribute(shaped, "weak_type", &inner);
  }
  Py_XDECREF(aval);
  return is_array ? inner : mix(hash, reinterpret_cast<uintptr_t>(Py_TYPE(argument)));
}

/// Size of a host array; 0 for everything else, and for a number.
uint64_t hostBytes(PyObject *object) {
  if (Py_TYPE(object) != g_host_array_types[0] && Py_TYPE(object) != g_host_array_types[1]) {
    return 0;
  }
  static PyObject *const name = PyUnicode_InternFromString("nbytes");
  static PyObject *const inner_name = PyUnicode_InternFromString("val");
  PyObject *answer = PyObject_GetAttr(object, name);
  if (!answer) { // jax 0.8 wraps the array, newer ones inherit from it
    PyErr_Clear();
    PyObject *inner = PyObject_GetAttr(object, inner_name);
    answer = inner ? PyObject_GetAttr(inner, name) : nullptr;
    Py_XDECREF(inner);
  }
  uint64_t bytes = answer ? PyLong_AsUnsignedLongLong(answer) : 0;
  Py_XDECREF(answer);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return 0;
  }
  return bytes > kNumberBytes ? bytes : 0;
}

void addHostBytes(PyObject *object, HostBytes *sum) {
  uint64_t bytes = hostBytes(object);
  sum->copied += bytes;
  if (bytes > 0 && wasCopiedBefore(object, bytes)) {
    sum->repeated += bytes;
  }
}

/// Add the size of an argument, or of the entries of a small container.
void addHostBytesIn(PyObject *argument, HostBytes *sum) {
  if (PyTuple_CheckExact(argument) || PyList_CheckExact(argument)) {
    Py_ssize_t size = PySequence_Fast_GET_SIZE(argument);
    for (Py_ssize_t i = 0; size <= kMostEntries && i < PySequence_Fast_GET_SIZE(argument); ++i) {
      Held entry(PySequence_Fast_GET_ITEM(argument, i));
      addHostBytes(entry.get(), sum);
    }
    return;
  }
  if (PyDict_CheckExact(argument)) {
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_GET_SIZE(argument) <= kMostEntries &&
           PyDict_Next(argument, &position, &key, &value)) {
      Held entry(value);
      addHostBytes(entry.get(), sum);
    }
    return;
  }
  addHostBytes(argument, sum);
}

} // namespace

uint64_t signatureOf(PyObject *const *arguments, size_t count, PyObject *keywords) {
  uint64_t hash = 0x243F6A8885A308D3u;
  size_t names = keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0;
  for (size_t i = 0; i < count; ++i) {
    hash = mixArgument(mix(hash, i + 1), arguments[i], 0);
  }
  uint64_t sum = 0; // keywords come in the caller's order
  for (size_t i = 0; i < names; ++i) {
    uint64_t name = hashOrZero(PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(i)));
    sum += mixArgument(mix(0, name), arguments[count + i], 0);
  }
  hash = mix(hash, sum);
  return hash ? hash : 1;
}

void watchHostArrays(PyObject *type, PyObject *other) {
  g_host_array_types = {reinterpret_cast<PyTypeObject *>(type),
                        reinterpret_cast<PyTypeObject *>(other)};
  if (!type) {
    forgetCopiedArrays();
  }
}

void noteHostArgumentsSlow(Recorder &recorder, Node *node, PyObject *const *arguments,
                           size_t count) {
  HostBytes sum;
  for (size_t i = 0; i < count; ++i) {
    addHostBytesIn(arguments[i], &sum);
  }
  if (sum.copied > 0) {
    static const uint16_t metric = MetricRegistry::instance().id("transfer_bytes");
    recorder.tree.metric(node, metric).add(sum.copied);
  }
  if (sum.repeated > 0) {
    static const uint16_t metric = MetricRegistry::instance().id("repeated_transfer_bytes");
    recorder.tree.metric(node, metric).add(sum.repeated);
  }
}

} // namespace deepcontext::jax
