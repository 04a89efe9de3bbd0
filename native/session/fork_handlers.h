#pragma once
// Fork handlers of all layers.

namespace deepcontext {

/// Register the handlers; once, when the extension is loaded.
void installForkHandlers();

} // namespace deepcontext
