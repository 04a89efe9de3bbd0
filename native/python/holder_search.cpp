#include "python/holder_search.h"

#include <frameobject.h>

#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <unordered_set>

#include "core/guard.h"
#include "python/interpreter_frame.h"

namespace deepcontext {

namespace {

using Clock = std::chrono::steady_clock;

/// References between two looks at the clock.
constexpr size_t kBetweenLooks = 1024;
/// Small objects that are remembered to be counted for their holders: 2 MiB.
constexpr size_t kMostCarriers = 65536;

class Deadline {
public:
  explicit Deadline(SearchLimit *limit)
      : limit_(limit), end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                               std::chrono::duration<double>(limit->seconds))) {}
  /// Whether the search must end; called for each object and each reference.
  bool isOver() {
    if (++seen_ % kBetweenLooks == 0 && Clock::now() > end_) {
      limit_->is_exceeded = true;
    }
    return limit_->is_exceeded;
  }

private:
  SearchLimit *limit_;
  Clock::time_point end_;
  size_t seen_ = 0;
};

/// Call `visit` for each object that the garbage collector tracks, until it returns false or memory
/// runs out.
template <typename Visit> void forEachObject(Visit visit) {
  auto visit_next = [&visit](PyObject *object) {
    bool goes_on = false;
    guarded([&] { goes_on = visit(object); });
    return goes_on;
  };
#if PY_VERSION_HEX >= 0x030c0000
  PyUnstable_GC_VisitObjects(
      [](PyObject *object, void *argument) {
        return (*static_cast<decltype(visit_next) *>(argument))(object) ? 1 : 0;
      },
      &visit_next);
#else
  int was_collecting = PyGC_Disable(); // the list could start a collection, which runs finalisers
  PyObject *gc = PyImport_ImportModule("gc");
  PyObject *all = gc ? PyObject_CallMethod(gc, "get_objects", nullptr) : nullptr;
  for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(all); ++i) {
    if (!visit_next(PyList_GET_ITEM(all, i))) {
      break;
    }
  }
  Py_XDECREF(all);
  Py_XDECREF(gc);
  PyErr_Clear();
  if (was_collecting) {
    PyGC_Enable();
  }
#endif
}

/// Call `see` for each object that `object` refers to, until it returns false.
template <typename See> void forEachReferred(PyObject *object, See see) {
  traverseproc traverse = Py_TYPE(object)->tp_traverse;
  if (!traverse) {
    return;
  }
  traverse(
      object,
      [](PyObject *referred, void *argument) {
        return (*static_cast<See *>(argument))(referred) ? 0 : 1;
      },
      &see);
}

/// The frame objects of running functions, whose variables are no holders: they go by themselves.
std::unordered_set<const PyObject *> runningFrames() {
  std::unordered_set<const PyObject *> found;
  PyThreadState *state = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  for (; state; state = PyThreadState_Next(state)) {
    for (const InterpreterFrame *frame = innermostFrame(state); frame; frame = callerFrame(frame)) {
      found.insert(static_cast<const PyObject *>(frame->frame_object));
    }
  }
  return found;
}

/// Whether a reference of the profiler's could disturb the program: a tuple or frozenset that
/// another thread is filling must have one reference only, or filling it fails.
bool mayBeIncomplete(PyObject *object) {
  return Py_TYPE(object) == &PyTuple_Type || Py_TYPE(object) == &PyFrozenSet_Type;
}

/// Whether a small object of this type is a part of what holds it.
bool mayCarry(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  return type == &PyTuple_Type || type == &PyList_Type || type == &PyDict_Type ||
         PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE);
}

class HolderSearch {
public:
  HolderSearch(PyTypeObject *tensor, size_t fewest, SearchLimit *limit)
      : tensor_(tensor), fewest_(fewest), limit_(limit) {}

  std::vector<Holder> find() {
    std::unordered_set<const PyObject *> running = runningFrames();
    Deadline deadline(limit_);
    forEachObject([&](PyObject *object) {
      look(object, running, deadline);
      return !deadline.isOver();
    });
    countCarried(deadline);
    return std::move(holders_);
  }

private:
  void look(PyObject *object, const std::unordered_set<const PyObject *> &running,
            Deadline &deadline) {
    if (Py_TYPE(object) == tensor_) {
      return; // its graph is no holder
    }
    size_t tensors = 0;
    forEachReferred(object, [&](PyObject *referred) {
      tensors += Py_TYPE(referred) == tensor_;
      return !deadline.isOver();
    });
    if (tensors == 0) {
      return;
    }
    bool is_frame = Py_TYPE(object) == &PyFrame_Type;
    bool is_holder =
        is_frame ? running.count(object) == 0 : tensors >= fewest_ && !mayBeIncomplete(object);
    if (is_holder) {
      holders_.push_back({Py_NewRef(object), tensors});
    } else if (!is_frame && mayCarry(object) && carriers_.size() < kMostCarriers) {
      carriers_.emplace(object, tensors);
    }
  }

  /// Add what small objects hold to the objects that hold many of them. The carriers are alive,
  /// because nothing runs between the two passes.
  void countCarried(Deadline &deadline) {
    if (carriers_.size() < fewest_) {
      return;
    }
    forEachObject([&](PyObject *object) {
      if (Py_TYPE(object) == tensor_ || Py_TYPE(object) == &PyFrame_Type ||
          mayBeIncomplete(object)) {
        return !deadline.isOver();
      }
      size_t tensors = 0, parts = 0;
      forEachReferred(object, [&](PyObject *referred) {
        auto found = carriers_.find(referred);
        if (found != carriers_.end()) {
          tensors += found->second;
          ++parts;
        }
        return !deadline.isOver();
      });
      if (parts >= fewest_) {
        holders_.push_back({Py_NewRef(object), tensors});
      }
      return !deadline.isOver();
    });
  }

  PyTypeObject *tensor_;
  size_t fewest_;
  SearchLimit *limit_;
  std::vector<Holder> holders_;
  std::unordered_map<PyObject *, size_t> carriers_;
};

} // namespace

std::vector<Holder> findHolders(PyTypeObject *tensor, size_t fewest, size_t most,
                                SearchLimit *limit) {
  std::vector<Holder> found = HolderSearch(tensor, fewest, limit).find();
  std::sort(found.begin(), found.end(),
            [](const Holder &left, const Holder &right) { return left.tensors > right.tensors; });
  while (found.size() > most) {
    Py_DECREF(found.back().object);
    found.pop_back();
  }
  return found;
}

std::vector<PyObject *> tensorsIn(PyObject *holder, PyTypeObject *tensor, size_t stride,
                                  size_t most) {
  std::vector<PyObject *> found;
  found.reserve(most); // no exception may cross the interpreter's functions
  size_t seen = 0;
  auto take = [&](PyObject *object) {
    if (seen++ % stride == 0) {
      found.push_back(Py_NewRef(object));
    }
    return found.size() < most;
  };
  forEachReferred(holder, [&](PyObject *referred) {
    if (Py_TYPE(referred) == tensor) {
      return take(referred);
    }
    if (mayCarry(referred)) {
      forEachReferred(referred,
                      [&](PyObject *part) { return Py_TYPE(part) != tensor || take(part); });
    }
    return found.size() < most;
  });
  return found;
}

std::vector<std::pair<size_t, PyObject *>> findReferrers(PyObject *targets, size_t most,
                                                         SearchLimit *limit) {
  std::unordered_map<const PyObject *, size_t> position;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(targets); ++i) {
    position.emplace(PyList_GET_ITEM(targets, i), static_cast<size_t>(i));
  }
  std::vector<size_t> found_of(static_cast<size_t>(PyList_GET_SIZE(targets)));
  std::vector<std::pair<size_t, PyObject *>> found;
  found.reserve(found_of.size() * most); // no exception may cross the interpreter's functions
  Deadline deadline(limit);
  forEachObject([&](PyObject *object) {
    if (object != targets && Py_TYPE(object) != &PyFrame_Type && !mayBeIncomplete(object)) {
      size_t last = SIZE_MAX;
      forEachReferred(object, [&](PyObject *referred) {
        auto target = position.find(referred);
        if (target != position.end() && target->second != last && found_of[target->second] < most) {
          last = target->second;
          ++found_of[last];
          found.emplace_back(last, Py_NewRef(object));
        }
        return !deadline.isOver();
      });
    }
    return !deadline.isOver();
  });
  return found;
}

std::vector<HoldingVariable> findVariables(PyObject *targets) {
  std::unordered_map<uintptr_t, size_t> position;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(targets); ++i) {
    position.emplace(reinterpret_cast<uintptr_t>(PyList_GET_ITEM(targets, i)),
                     static_cast<size_t>(i));
  }
  std::vector<HoldingVariable> found;
  PyThreadState *state = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  for (; state; state = PyThreadState_Next(state)) {
    for (const InterpreterFrame *frame = innermostFrame(state); frame; frame = callerFrame(frame)) {
      const PyCodeObject *code = frameCode(frame);
      for (int i = 0; i < code->co_nlocalsplus; ++i) {
        auto target = position.find(frame->locals_plus[i] & ~kReferenceTag);
        if (target != position.end()) {
          PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
          found.push_back({target->second, code, Py_NewRef(name)});
        }
      }
    }
  }
  return found;
}

} // namespace deepcontext
