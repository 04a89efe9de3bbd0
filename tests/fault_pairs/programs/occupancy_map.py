"""Builds an occupancy map from range readings, then smooths it for a planner."""
import jax
import jax.numpy as jnp
import numpy as np

CELLS = 1500
SCANS = 36
RAYS = 60


class Lidar:
    """A robot on a circle looking at the walls of a square room."""

    def __init__(self, scans, seed=0):
        self.scans = scans
        self.rng = np.random.default_rng(seed)

    def readings(self):
        for i in range(self.scans):
            angle = 2 * np.pi * i / self.scans
            origin = 0.4 * np.array([np.cos(angle), np.sin(angle)])
            headings = np.linspace(0, 2 * np.pi, RAYS, endpoint=False)
            direction = np.stack([np.cos(headings), np.sin(headings)], 1)
            with np.errstate(divide="ignore"):
                reach = np.where(direction > 0, (1 - origin) / direction, (-1 - origin) / direction)
            distance = reach.min(1) + 0.01 * self.rng.standard_normal(RAYS)
            yield origin + direction * distance[:, None]


def to_cells(points):
    cells = ((points + 1.05) / 2.1 * CELLS).astype(int)
    return np.clip(cells, 0, CELLS - 1)


class OccupancyMap:
    def __init__(self, size):
        self.grid = jnp.zeros((size, size))

    def integrate(self, cells):
        for row, col in cells:
            self.grid = self.grid.at[row, col].add(0.85)  # the problem

    def integrate_all(self, scans):
        for points in scans:
            self.integrate(to_cells(points))


@jax.jit
def smooth(grid):
    kernel = jnp.exp(-0.5 * (jnp.arange(-4, 5) / 1.5) ** 2)
    kernel = kernel / kernel.sum()
    rows = jax.vmap(lambda r: jnp.convolve(r, kernel, mode="same"))(grid)
    return jax.vmap(lambda r: jnp.convolve(r, kernel, mode="same"))(rows.T).T


@jax.jit
def cost(grid):
    occupied = jax.nn.sigmoid(grid * 4.0 - 2.0)
    return occupied.mean(), occupied.max()


def main():
    world = OccupancyMap(CELLS)
    world.integrate_all(Lidar(SCANS).readings())
    print(f"marked {int((world.grid > 0).sum())} cells")
    grid = world.grid
    for _ in range(6):
        grid = smooth(grid)
    mean, peak = cost(grid)
    print(f"final {float(mean):.6f} {float(peak):.4f}")


if __name__ == "__main__":
    main()
