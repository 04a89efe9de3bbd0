#pragma once
// How a binding calls functions that wait for a lock without the GIL.
#include "core/without_gil.h"
#include "python/gil_release.h"

namespace deepcontext {

/// The GIL is released while this exists.
struct GilGivenUp {
  GilRelease release;
  WithoutGil proof;
};

/// Run `work(proof)` without the GIL. It makes no Python object and holds no lock when it returns.
template <typename Work> auto withoutGil(const Work &work) {
  GilGivenUp given_up;
  return work(given_up.proof);
}

} // namespace deepcontext
