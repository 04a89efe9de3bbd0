#pragma once
// How a binding waits for a lock that another thread may hold for milliseconds.
#include "core/without_gil.h"
#include "python/gil_release.h"

namespace deepcontext {

/// The GIL is given up for as long as this exists.
struct GilGivenUp {
  GilRelease release;
  WithoutGil proof;
};

/// Run `work`, which is given the proof, without the GIL; it makes no Python object. What it
/// returns has let go of every lock when the GIL is taken again.
template <typename Work> auto withoutGil(const Work &work) {
  GilGivenUp given_up;
  return work(given_up.proof);
}

} // namespace deepcontext
