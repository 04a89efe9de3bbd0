#include "jax/device_groups.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "jax/wire.h"

namespace deepcontext::jax {

namespace {

constexpr size_t kMostDimensions = 64; // a damaged file must not take for ever

/// The product of positive sizes, or 0 where it exceeds `most` or a size is not positive.
template <typename Sizes, typename SizeOf>
size_t product(const Sizes &sizes, size_t most, const SizeOf &size_of) {
  size_t all = 1;
  for (const auto &each : sizes) {
    int64_t size = size_of(each);
    if (size <= 0 || static_cast<size_t>(size) > most / all) {
      return 0;
    }
    all *= static_cast<size_t>(size);
  }
  return all;
}

bool isPermutation(const std::vector<int64_t> &of, size_t count) {
  std::vector<int64_t> sorted = of;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return sorted == all;
}

int64_t signedOf(const WireField &field) {
  return static_cast<int64_t>(field.number);
}

} // namespace

// Source of the messages and of their field numbers: xla/xla_data.proto.

void DeviceGroups::readList(std::string_view bytes) {
  std::vector<int64_t> &group = lists_.emplace_back();
  forEachField(bytes, [&](const WireField &field) {
    if (field.id == 1) {
      appendNumbers(field, &group);
    }
  });
}

void DeviceGroups::readLists(std::string_view bytes) {
  forEachField(bytes, [&](const WireField &field) {
    if (field.id == 1) {
      readList(field.bytes);
    } else if (field.id == 2) {
      readIota(field.bytes);
    } else {
      is_unknown_ = true;
    }
  });
}

void DeviceGroups::readIota(std::string_view bytes) {
  int64_t groups = 0, members = 0;
  is_grid_ = true;
  forEachField(bytes, [&](const WireField &field) {
    if (field.id == 1) {
      groups = signedOf(field);
    } else if (field.id == 2) {
      members = signedOf(field);
    } else if (field.id == 3) {
      appendNumbers(field, &reshaped_);
    } else if (field.id == 4) {
      appendNumbers(field, &permutation_);
    }
  });
  grid_ = {{groups, false}, {members, true}};
}

void DeviceGroups::readMesh(std::string_view bytes) {
  struct Part { // of an axis: steps of `before`, so many
    int64_t axis = 0, before = 1, size = 0;
  };
  std::vector<int64_t> axes;
  std::vector<Part> parts;
  is_grid_ = true;
  auto read_mesh = [&](const WireField &field) {
    if (field.id == 1) {
      int64_t &size = axes.emplace_back();
      forEachField(field.bytes, [&](const WireField &of_axis) {
        size = of_axis.id == 2 ? signedOf(of_axis) : size;
      });
    } else if (field.id == 2) {
      appendNumbers(field, &devices_);
    } else if (field.id == 3) {
      forEachField(field.bytes, [&](const WireField &transform) {
        if (transform.id == 1 || transform.id == 2) {
          appendNumbers(transform, transform.id == 1 ? &reshaped_ : &permutation_);
        }
      });
    }
  };
  auto read_part = [&](const WireField &field) {
    Part &part = parts.back();
    if (field.id == 1) {
      part.axis = signedOf(field);
    } else if (field.id == 2) {
      part.before = 0;
      forEachField(field.bytes, [&](const WireField &sub) {
        (sub.id == 1 ? part.before : part.size) = signedOf(sub);
      });
      is_unknown_ = is_unknown_ || part.before <= 0 || part.size <= 0;
    }
  };
  forEachField(bytes, [&](const WireField &field) {
    if (field.id == 1) {
      forEachField(field.bytes, read_mesh);
    } else if (field.id == 2) {
      parts.emplace_back();
      forEachField(field.bytes, read_part);
    }
  });
  std::stable_sort(parts.begin(), parts.end(), [](const Part &left, const Part &right) {
    return std::make_pair(left.axis, left.before) < std::make_pair(right.axis, right.before);
  });
  auto part = parts.begin();
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    int64_t left = axes[axis]; // of the axis, after the parts so far
    int64_t before = 1;
    for (; part != parts.end() && part->axis == static_cast<int64_t>(axis); ++part) {
      int64_t size = part->size == 0 ? axes[axis] : part->size;
      int64_t gap = part->before / before;
      if (gap <= 0 || size <= 0 || part->before % before != 0 || left % gap != 0 ||
          left / gap % size != 0) {
        is_unknown_ = true;
        return;
      }
      addDimension(gap, false);
      addDimension(size, true);
      left = left / gap / size;
      before = part->before * size; // no overflow: it divides the axis
    }
    addDimension(left, false);
  }
  is_unknown_ = is_unknown_ || axes.empty() || part != parts.end();
}

/// Leaves out dimensions of one device, of which a damaged file may have any number.
void DeviceGroups::addDimension(int64_t size, bool is_of_group) {
  if (size != 1) {
    grid_.push_back({size, is_of_group});
  }
}

std::optional<DeviceGroups::Lists> DeviceGroups::of(size_t devices) const {
  if (is_unknown_) {
    return std::nullopt;
  }
  if (is_grid_) {
    return ofGrid(devices);
  }
  Lists groups = lists_;
  if (groups.empty()) {
    std::vector<int64_t> &all = groups.emplace_back(devices);
    std::iota(all.begin(), all.end(), 0);
  }
  for (const std::vector<int64_t> &group : groups) {
    for (int64_t device : group) {
      if (device < 0 || static_cast<size_t>(device) >= devices) {
        return std::nullopt;
      }
    }
  }
  return groups;
}

std::optional<DeviceGroups::Lists> DeviceGroups::ofGrid(size_t devices) const {
  auto size_of = [](const Dimension &dimension) { return dimension.size; };
  size_t count = product(grid_, devices, size_of);
  std::vector<int64_t> placed = order(count);
  if (count == 0 || placed.size() != count) {
    return std::nullopt;
  }
  Lists groups;
  for (size_t i = 0; i < count; ++i) {
    size_t rest = i, group = 0, step = 1;
    for (auto dimension = grid_.rbegin(); dimension != grid_.rend(); ++dimension) {
      auto size = static_cast<size_t>(dimension->size);
      if (!dimension->is_of_group) {
        group += rest % size * step;
        step *= size;
      }
      rest /= size;
    }
    groups.resize(step);
    if (placed[i] < 0 || static_cast<size_t>(placed[i]) >= devices) {
      return std::nullopt;
    }
    groups[group].push_back(placed[i]);
  }
  return groups;
}

/// The grid's devices, row by row; as many as `count` only where what was read makes sense.
std::vector<int64_t> DeviceGroups::order(size_t count) const {
  if (!devices_.empty()) {
    return devices_;
  }
  std::vector<int64_t> sizes = reshaped_, steps(reshaped_.size(), 1), axes = permutation_;
  if (sizes.empty()) {
    sizes = {static_cast<int64_t>(count)};
    steps = {1};
  }
  if (axes.empty()) {
    axes.resize(sizes.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (sizes.size() > kMostDimensions ||
      product(sizes, count, [](int64_t size) { return size; }) != count ||
      !isPermutation(axes, sizes.size())) {
    return {};
  }
  for (size_t i = sizes.size() - 1; i > 0; --i) {
    steps[i - 1] = steps[i] * sizes[i];
  }
  std::vector<int64_t> devices(count);
  for (size_t i = 0; i < count; ++i) {
    auto rest = static_cast<int64_t>(i);
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      auto at = static_cast<size_t>(*axis);
      devices[i] += rest % sizes[at] * steps[at];
      rest /= sizes[at];
    }
  }
  return devices;
}

} // namespace deepcontext::jax
