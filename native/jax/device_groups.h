#pragma once
// Which devices of a program exchange data with each other in one collective.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace deepcontext::jax {

/// Groups of devices, by their place in the program's assignment, as HLO writes them: as lists, or
/// as a grid of devices and the dimensions of the grid along which a group lies.
class DeviceGroups {
public:
  using Lists = std::vector<std::vector<int64_t>>;

  /// Read a ReplicaGroup.
  void readList(std::string_view bytes);
  /// Read a CollectiveDeviceListProto: lists, or an IotaReplicaGroupListProto (older XLA).
  void readLists(std::string_view bytes);
  /// Read an IotaReplicaGroupListProto.
  void readIota(std::string_view bytes);
  /// Read a MeshAxesReplicaGroupListProto.
  void readMesh(std::string_view bytes);

  /// The groups of a program on `devices` devices; all together where the program names none.
  /// Nothing where this build does not know the form, or the form does not fit.
  std::optional<Lists> of(size_t devices) const;

private:
  struct Dimension {
    int64_t size;
    bool is_of_group; // the devices of a group differ in it
  };

  void addDimension(int64_t size, bool is_of_group);
  std::optional<Lists> ofGrid(size_t devices) const;
  std::vector<int64_t> order(size_t count) const;

  Lists lists_;
  bool is_grid_ = false, is_unknown_ = false;
  std::vector<Dimension> grid_;
  // Devices of the grid, row by row: the list, or 0, 1, 2, ... reshaped and then transposed.
  std::vector<int64_t> devices_, reshaped_, permutation_;
};

} // namespace deepcontext::jax
