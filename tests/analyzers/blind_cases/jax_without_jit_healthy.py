"""Simulate particles."""

import jax
import jax.numpy as jnp


@jax.jit
def forces(positions: jax.Array) -> jax.Array:
    offset = positions[:, None] - positions[None]
    distance = jnp.sum(offset**2, -1) + 0.1
    pull = offset / distance[..., None] ** 1.5
    return -jnp.sum(pull, 1)


class Particles:
    def __init__(self, count: int) -> None:
        self.positions = jax.random.normal(jax.random.key(0), (count, 2))
        self.velocities = jnp.zeros((count, 2))

    def advance(self, time_step: float) -> None:
        middle = self.velocities + 0.5 * time_step * forces(self.positions)
        self.positions = self.positions + time_step * middle
        self.velocities = middle + 0.5 * time_step * forces(self.positions)


def main(steps: int) -> None:
    particles = Particles(32)
    for _ in range(steps):
        particles.advance(0.01)
    print(float(jnp.sum(particles.velocities**2)))


if __name__ == "__main__":
    main(1000)
