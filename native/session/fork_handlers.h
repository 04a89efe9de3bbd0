#pragma once
// What every layer does when the process forks.

namespace deepcontext {

/// Register the handlers; once, when the extension is loaded.
void installForkHandlers();

} // namespace deepcontext
