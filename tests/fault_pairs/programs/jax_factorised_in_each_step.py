import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import linalg


def stiffness(points: int, rate: float) -> jax.Array:
    grid = jnp.arange(points)
    coupling = jnp.exp(-jnp.abs(grid[:, None] - grid[None, :]) / 3.0)
    laplacian = jnp.diag(coupling.sum(1)) - coupling
    return jnp.eye(points) + rate * laplacian


class ImplicitEuler:
    def __init__(self, matrix: jax.Array, dt: float) -> None:
        self.matrix = matrix
        self.dt = dt
        self.advance = jax.jit(self.step)

    def step(self, system: jax.Array, state: jax.Array, source: jax.Array) -> jax.Array:
        return linalg.solve(system, state + self.dt * source, assume_a="pos")  # the problem

    def run(self, state: jax.Array, sources: np.ndarray) -> np.ndarray:
        system = self.matrix
        trajectory = []
        for source in sources:
            state = self.advance(system, state, source)
            trajectory.append(state)
        return np.stack(trajectory)


@jax.jit
def surrogate_error(weights: jax.Array, trajectory: np.ndarray, sources: np.ndarray) -> jax.Array:
    inputs = jnp.concatenate([trajectory[:-1], sources[1:]], axis=1)
    return jnp.mean((inputs @ weights - trajectory[1:]) ** 2)


def main(points: int = 800, steps: int = 500) -> None:
    rng = np.random.default_rng(0)
    solver = ImplicitEuler(stiffness(points, 0.05), 0.01)
    sources = rng.standard_normal((steps, points), dtype=np.float32).cumsum(axis=0)
    trajectory = solver.run(jnp.zeros(points), sources)
    weights = 0.01 * rng.standard_normal((2 * points, points), dtype=np.float32)
    error = surrogate_error(weights, trajectory, sources)
    print(f"end {trajectory[-1].mean().item():.4f}, error {error.item():.4f}")


if __name__ == "__main__":
    main()
