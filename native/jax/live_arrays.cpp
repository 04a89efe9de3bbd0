#include "jax/live_arrays.h"

#include "core/guard.h"
#include "core/mutex.h"
#include "core/probe_table.h"

namespace deepcontext::jax {

PyTypeObject *g_array_type = nullptr;

namespace {

constexpr int kMaxDepth = 16;
constexpr int kMaxContainers = 2000; // looked into in one result
constexpr int kMaxVisits = 20'000;   // objects looked at in one result, besides its arrays
constexpr size_t kFirstSlots = 1024;
constexpr size_t kMaxSlots = 1u << 20; // 16 MiB; past this limit, makers are not noted

destructor g_dealloc = nullptr; // of the type watched
PyObject *g_nodes = nullptr;    // container types that programs registered; GIL held

/// Makers of living arrays.
class Makers {
public:
  void store(const PyObject *array, NodeRef maker) {
    if (Slot *slot = slots_.findOrInsert(array, {array, maker})) {
      slot->maker = maker;
    }
  }
  NodeRef of(const PyObject *array) const {
    const Slot *slot = slots_.find(array);
    return slot ? slot->maker : NodeRef::unknown();
  }
  void erase(const PyObject *array) {
    if (Slot *slot = slots_.find(array)) {
      slots_.erase(slot);
    }
  }
  void clear() { slots_.clear(); }

private:
  struct Slot {
    const PyObject *array = nullptr;
    NodeRef maker;

    bool isFree() const { return !array; }
    bool isOf(const PyObject *other) const { return array == other; }
    uint64_t hash() const { return hashOf(array); }
    static uint64_t hashOf(const PyObject *array) {
      return ((reinterpret_cast<uintptr_t>(array) >> 4) * 0x9E3779B97F4A7C15u) >> 32;
    }
  };
  ProbeTable<Slot> slots_{kFirstSlots, kMaxSlots};
};

// GIL held.
Makers &makers() {
  static Makers *const makers = new Makers();
  return *makers;
}

using BytesByNode = std::map<NodeRef, uint64_t>;

/// A sum over the living arrays.
struct Sum {
  HeldByNode held;
  BytesByNode host_bytes, device_bytes;
  HeldArrays total;
};

Sum &sum() {
  static Sum *const sum = new Sum();
  return *sum;
}

struct Results {
  Mutex mutex;
  HeldByNode now, at_peak;
  uint64_t peak_bytes = 0;
  ArrayGrowth host_growth, device_growth;
};

Results &results() {
  static Results *const results = new Results();
  return *results;
}

std::map<uint32_t, FedBack> &fedBackOf() {
  static auto *const known = new std::map<uint32_t, FedBack>();
  return *known;
}

/// Searches arguments and results of a jitted function for arrays: tuples, lists, dicts, and types
/// that were registered as containers with jax. Other objects are not searched, because jax knows
/// no arrays in them: a train state keeps its model's bound method, which would lead to the whole
/// model.
template <typename OnArray> class Finder {
public:
  explicit Finder(OnArray on_array) : on_array_(on_array) {}
  int visits() const { return visits_; }

  void look(PyObject *object) {
    if (Py_TYPE(object) == g_array_type) {
      on_array_(object);
      return;
    }
    if (depth_ >= kMaxDepth || containers_ >= kMaxContainers || ++visits_ > kMaxVisits ||
        !isContainer(object)) {
      return;
    }
    ++containers_;
    ++depth_;
    Py_TYPE(object)->tp_traverse(object, visit, this); // also of a dataclass, or the like
    --depth_;
  }

private:
  static int visit(PyObject *object, void *finder) {
    guarded([&] { static_cast<Finder *>(finder)->look(object); }); // the type's own C calls this
    return 0;
  }

  static bool isContainer(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    if (!PyType_IS_GC(type) || !type->tp_traverse) {
      return false;
    }
    return PyTuple_Check(object) || PyList_Check(object) || PyDict_Check(object) ||
           isRegistered(type);
  }

  static bool isRegistered(PyTypeObject *type) {
    // A metaclass with its own hash would run code of the program.
    bool has_plain_hash = Py_TYPE(type)->tp_hash == PyType_Type.tp_hash;
    return g_nodes && has_plain_hash &&
           PyDict_Contains(g_nodes, reinterpret_cast<PyObject *>(type)) > 0;
  }

  OnArray on_array_;
  int depth_ = 0;
  int containers_ = 0;
  int visits_ = 0;
};

/// Size of an array's buffers; false if the array was deleted in the meantime. Reading the address
/// of the buffer, to find arrays that share one, would wait for the program that computes the
/// array.
bool sizeOf(PyObject *array, uint64_t *bytes) {
  static PyObject *const method = PyUnicode_InternFromString("on_device_size_in_bytes");
  PyObject *answer = PyObject_CallMethodNoArgs(array, method);
  if (answer) {
    *bytes = PyLong_AsUnsignedLongLong(answer);
    Py_DECREF(answer);
  }
  bool has_failed = PyErr_Occurred() != nullptr;
  PyErr_Clear();
  return !has_failed;
}

void weigh(PyObject *array, bool is_device) {
  Sum &under_way = sum();
  uint64_t bytes = 0;
  if (!sizeOf(array, &bytes)) {
    return;
  }
  NodeRef maker = makers().of(array);
  for (HeldArrays *held : {&under_way.held[maker], &under_way.total}) {
    ++held->count;
    held->bytes += bytes;
  }
  (is_device ? under_way.device_bytes : under_way.host_bytes)[maker] += bytes;
}

void onDealloc(PyObject *array) {
  makers().erase(array);
  g_dealloc(array);
}

} // namespace

bool watchArrays(PyObject *object, PyObject *nodes, std::string *reason) {
  auto *type = reinterpret_cast<PyTypeObject *>(object);
  if (!PyType_Check(object) || (g_dealloc && type->tp_dealloc != g_dealloc)) {
    *reason = "another tool has replaced the function that is called when an array dies";
    return false;
  }
  makers(); // made now, not where an array dies
  Py_XSETREF(g_nodes, Py_XNewRef(nodes && PyDict_Check(nodes) ? nodes : nullptr));
  g_array_type = type;
  g_dealloc = type->tp_dealloc;
  type->tp_dealloc = onDealloc;
  return true;
}

void unwatchArrays() {
  if (g_array_type && g_array_type->tp_dealloc == onDealloc) {
    g_array_type->tp_dealloc = g_dealloc;
  }
  g_array_type = nullptr;
  Py_CLEAR(g_nodes);
  makers().clear();
}

Search searchArrays(PyObject *result) {
  Search search;
  Finder finder([&](PyObject *) { ++search.arrays; });
  finder.look(result);
  search.visits = search.arrays + static_cast<uint64_t>(finder.visits());
  return search;
}

void noteMadeSlow(PyObject *result, NodeRef node) {
  Finder([node](PyObject *array) { makers().store(array, node); }).look(result);
}

void noteArguments(uint32_t function, NodeRef node, PyObject *const *arguments, size_t count) {
  if (!g_array_type) {
    return;
  }
  bool is_fed_back = false;
  for (size_t i = 0; i < count; ++i) {
    Finder([&](PyObject *array) {
      NodeRef maker = makers().of(array);
      is_fed_back = is_fed_back || (maker.recorder == node.recorder && maker.node == node.node);
    }).look(arguments[i]);
  }
  FedBack &known = fedBackOf()[function];
  ++known.launches;
  known.fed_back += is_fed_back;
}

std::map<uint32_t, FedBack> fedBack() {
  return fedBackOf();
}

void beginWeighing() {
  sum() = Sum();
}

void weighArrays(PyObject *arrays, bool is_device) {
  for (Py_ssize_t i = 0; PyList_Check(arrays) && i < PyList_GET_SIZE(arrays); ++i) {
    weigh(PyList_GET_ITEM(arrays, i), is_device);
  }
}

HeldArrays finishWeighing(bool is_step_end) {
  Sum &under_way = sum();
  HeldArrays total = under_way.total;
  {
    Results &known = results();
    std::lock_guard<Mutex> lock(known.mutex);
    known.now.swap(under_way.held);
    if (total.bytes > known.peak_bytes) {
      known.peak_bytes = total.bytes;
      known.at_peak = known.now;
    }
    if (is_step_end) {
      known.host_growth.look(under_way.host_bytes);
      known.device_growth.look(under_way.device_bytes);
    }
  }
  under_way = Sum();
  return total;
}

HeldByNode heldNow() {
  std::lock_guard<Mutex> lock(results().mutex);
  return results().now;
}

HeldByNode heldAtPeak() {
  std::lock_guard<Mutex> lock(results().mutex);
  return results().at_peak;
}

ArrayGrowth arrayGrowth(bool is_device) {
  std::lock_guard<Mutex> lock(results().mutex);
  return is_device ? results().device_growth : results().host_growth;
}

Mutex &arraysForkLock() {
  return results().mutex;
}

void clearArrays() {
  makers().clear();
  fedBackOf().clear();
  sum() = Sum();
  std::lock_guard<Mutex> lock(results().mutex);
  results().now.clear();
  results().at_peak.clear();
  results().peak_bytes = 0;
  results().host_growth = results().device_growth = ArrayGrowth();
}

} // namespace deepcontext::jax
