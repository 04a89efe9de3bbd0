#pragma once
// State of the layers above the core, one of each for a recorder.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace deepcontext {

/// The places, one a layer.
enum class ExtensionPlace : uint8_t { kFrameWalk, kNativeStack, kOperatorShapes, kCount };

/// Base class of a layer's state. A derived class names its place: `static constexpr ExtensionPlace
/// kPlace`.
struct RecorderExtension {
  virtual ~RecorderExtension() = default;
};

/// The extensions of one recorder. Owner thread only.
class RecorderExtensions {
public:
  /// The extension of this type, made at the first call.
  template <typename Extension> Extension &get() {
    static_assert(std::is_base_of_v<RecorderExtension, Extension>);
    std::unique_ptr<RecorderExtension> &held = held_[static_cast<size_t>(Extension::kPlace)];
    if (__builtin_expect(!held, 0)) {
      held = std::make_unique<Extension>();
    }
    return static_cast<Extension &>(*held);
  }

private:
  std::array<std::unique_ptr<RecorderExtension>, static_cast<size_t>(ExtensionPlace::kCount)> held_;
};

} // namespace deepcontext
