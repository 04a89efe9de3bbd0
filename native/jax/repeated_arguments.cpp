#include "jax/repeated_arguments.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "core/metric_registry.h"
#include "jax/arguments.h"

namespace deepcontext::jax {

namespace {

constexpr uint64_t kLargeBytes = 1 << 20; // copying less takes no longer than the call itself
constexpr size_t kArrays = 256;
constexpr size_t kWords = 64; // of an array; each may be a miss of all caches
constexpr size_t kRecentCalls = 8;
constexpr int kMostDepth = 8;
constexpr size_t kMostLeaves = 256;
constexpr size_t kWatched = 4;      // of the leaves
constexpr size_t kFewestLeaves = 2; // what is called with one array is often called with the same

struct GivenArray {
  PyObject *reference = nullptr; // weak
  uint64_t sample = 0;
};

struct Call {
  const Node *node = nullptr; // only compared: its tree may be gone
  uint64_t arguments = 0;
  std::array<PyObject *, kWatched> references{}; // weak, to some of the arguments
};

/// The objects that arguments consist of.
struct Leaves {
  std::array<PyObject *, kMostLeaves> objects; // the first `count`
  size_t count = 0;
};

std::array<GivenArray, kArrays> g_given;
std::array<Call, kRecentCalls> g_recent;
size_t g_next_recent = 0;
uint64_t g_unknown = 0;

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15u + (hash << 6) + (hash >> 2);
  return hash * 0xBF58476D1CE4E5B9u;
}

uint64_t addressOf(const PyObject *object) {
  return reinterpret_cast<uintptr_t>(object);
}

/// A hash of a few words of an array's contents; empty where the array is not contiguous.
std::optional<uint64_t> sampleOf(PyObject *array) {
  Py_buffer view;
  if (PyObject_GetBuffer(array, &view, PyBUF_ANY_CONTIGUOUS) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  const auto *bytes = static_cast<const char *>(view.buf);
  auto size = static_cast<size_t>(view.len);
  uint64_t hash = mix(0, size);
  size_t words = std::min(kWords, size / sizeof(uint64_t));
  for (size_t i = 0; i < words; ++i) {
    uint64_t word;
    std::memcpy(&word, bytes + size / words * i, sizeof(word));
    hash = mix(hash, word);
  }
  PyBuffer_Release(&view);
  return hash;
}

/// The object of a weak reference while it lives, for comparison only; null otherwise.
PyObject *objectOf(PyObject *reference) {
  if (!reference) {
    return nullptr;
  }
#if PY_VERSION_HEX >= 0x030D0000
  PyObject *object = nullptr;
  if (PyWeakref_GetRef(reference, &object) < 0) {
    PyErr_Clear();
  }
  Py_XDECREF(object);
  return object;
#else
  PyObject *object = PyWeakref_GetObject(reference);
  return object == Py_None ? nullptr : object;
#endif
}

/// A hash of which objects an argument consists of; reads no attribute and runs no code of the
/// program. NumPy arrays are often changed in place, so that their contents count, too.
uint64_t mixIdentity(uint64_t hash, PyObject *argument, int depth, Leaves *leaves) {
  if (depth > kMostDepth || leaves->count == kMostLeaves) {
    return mix(hash, addressOf(argument));
  }
  if (PyTuple_Check(argument) || PyList_Check(argument)) {
    Py_ssize_t size = PySequence_Fast_GET_SIZE(argument);
    hash = mix(hash, static_cast<uint64_t>(size));
    for (Py_ssize_t i = 0; i < size; ++i) {
      hash = mixIdentity(hash, PySequence_Fast_GET_ITEM(argument, i), depth + 1, leaves);
    }
    return hash;
  }
  if (PyDict_Check(argument)) {
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(argument, &position, &key, &value)) {
      hash = mixIdentity(mix(hash, addressOf(key)), value, depth + 1, leaves);
    }
    return hash;
  }
  leaves->objects[leaves->count++] = argument;
  hash = mix(hash, addressOf(argument));
  if (Py_TYPE(argument) == g_host_array_types[0]) {
    std::optional<uint64_t> sample = sampleOf(argument);
    hash = mix(hash, sample ? *sample : ++g_unknown);
  }
  return hash;
}

/// Replace a call by another one that refers to some of its arguments, spread over all of them.
void remember(Call *call, const Node *node, uint64_t arguments, const Leaves &leaves) {
  call->node = node;
  call->arguments = arguments;
  for (size_t i = 0; i < kWatched; ++i) {
    PyObject *leaf = leaves.objects[(leaves.count - 1) * i / (kWatched - 1)];
    PyObject *reference = nullptr;
    if (PyType_SUPPORTS_WEAKREFS(Py_TYPE(leaf))) {
      reference = PyWeakref_NewRef(leaf, nullptr);
      PyErr_Clear();
    }
    Py_XSETREF(call->references[i], reference);
  }
}

/// Whether a call had these arguments. An address alone may belong to another object by now.
bool hadArguments(const Call &call, uint64_t arguments) {
  if (call.arguments != arguments) {
    return false;
  }
  size_t living = 0;
  for (PyObject *reference : call.references) {
    if (reference && !objectOf(reference)) {
      return false;
    }
    living += reference != nullptr;
  }
  return living > 0;
}

} // namespace

bool wasCopiedBefore(PyObject *array, uint64_t bytes) {
  if (bytes < kLargeBytes) {
    return false;
  }
  std::optional<uint64_t> sample = sampleOf(array);
  if (!sample) {
    return false;
  }
  uint64_t address = addressOf(array) >> 4;
  GivenArray &given = g_given[(address ^ (address >> 8)) % kArrays];
  bool is_known = objectOf(given.reference) == array;
  if (is_known && given.sample == *sample) {
    return true;
  }
  if (!is_known) {
    PyObject *reference = PyWeakref_NewRef(array, nullptr);
    PyErr_Clear();
    Py_XSETREF(given.reference, reference);
  }
  given.sample = *sample;
  return false;
}

void noteSameArguments(Recorder &recorder, Node *node, PyObject *const *arguments, size_t count) {
  uint64_t hash = 1;
  Leaves leaves;
  for (size_t i = 0; i < count; ++i) {
    hash = mixIdentity(hash, arguments[i], 0, &leaves);
  }
  if (leaves.count < kFewestLeaves) {
    return;
  }
  bool is_repeated = std::any_of(g_recent.begin(), g_recent.end(), [&](const Call &call) {
    return call.node != node && hadArguments(call, hash);
  });
  if (is_repeated) {
    static const uint16_t metric = MetricRegistry::instance().id("same_arguments_count");
    recorder.tree.metric(node, metric).add(1);
  }
  remember(&g_recent[g_next_recent], node, hash, leaves);
  g_next_recent = (g_next_recent + 1) % kRecentCalls;
}

void forgetRepeatedArguments() {
  for (GivenArray &given : g_given) {
    Py_CLEAR(given.reference);
  }
  for (Call &call : g_recent) {
    for (PyObject *&reference : call.references) {
      Py_CLEAR(reference);
    }
    call = {};
  }
}

} // namespace deepcontext::jax
