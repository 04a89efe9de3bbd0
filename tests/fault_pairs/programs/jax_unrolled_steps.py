"""Find the forces that move many pendulums to their upper position."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp


@dataclass(frozen=True)
class Pendulum:
    gravity: float = 9.81
    friction: float = 0.1
    time_step: float = 0.1

    def step(self, state: jax.Array, force: jax.Array) -> jax.Array:
        angle, speed = state
        change = force - self.gravity * jnp.sin(angle) - self.friction * speed
        speed = speed + self.time_step * change
        return jnp.stack([angle + self.time_step * speed, speed])

    def cost(self, state: jax.Array, force: jax.Array) -> jax.Array:
        return (1 + jnp.cos(state[0])) + 0.01 * state[1] ** 2 + 0.001 * force**2


def total_cost(forces: jax.Array, pendulum: Pendulum) -> jax.Array:
    state, total = jnp.zeros((2, forces.shape[1])), 0.0
    for force in forces:  # the problem
        state = pendulum.step(state, force)
        total = total + pendulum.cost(state, force).mean()
    return total / len(forces)


class Planner:
    def __init__(self, pendulum: Pendulum, rate: float) -> None:
        self.pendulum = pendulum
        self.rate = rate
        self.improve = jax.jit(self.compute)

    def compute(self, forces: jax.Array) -> tuple[jax.Array, jax.Array]:
        cost, gradient = jax.value_and_grad(total_cost)(forces, self.pendulum)
        return forces - self.rate * gradient, cost


def main(length: int, pendulums: int, rounds: int) -> None:
    planner = Planner(Pendulum(), 5000.0)
    forces = jax.random.normal(jax.random.key(0), (length, pendulums))
    for number in range(rounds):
        forces, cost = planner.improve(forces)
        if number % 200 == 0:
            print(f"round {number}: cost {cost:.4f}")


if __name__ == "__main__":
    main(14, 1000, 1000)
