#include "python/python_thread.h"

#include <exception>
#include <thread>

#include "python/gil_release.h"
#include "python/own_python.h"

namespace deepcontext {

bool PythonThread::start(PyObject *work) {
  try {
    auto ended = std::make_shared<Event>();
    std::thread thread([work, ended] {
      Event::SetAtEnd at_end(*ended);
      OwnPython python;
      python.call(work);
      Py_DECREF(work);
    });
    Py_INCREF(work); // the thread needs the GIL, which is held here
    ended_ = ended;
    thread.detach();
    return true;
  } catch (const std::exception &) { // no thread, or no memory
    return false;
  }
}

bool PythonThread::join(double seconds) const {
  std::shared_ptr<Event> ended = ended_;
  GilRelease release;
  return !ended || ended->waitFor(seconds);
}

} // namespace deepcontext
