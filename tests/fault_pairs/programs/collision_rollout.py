"""Particle rollout: most particles fly freely, few are close to the wall and need a fine solver."""
import jax
import jax.numpy as jnp
import numpy as np

PARTICLES = 16384
STEPS = 60
DT = 0.02


def free_flight(state):
    pos, vel = state[:2], state[2:]
    acc = jnp.array([0.0, -9.81])
    return jnp.concatenate([pos + DT * vel + 0.5 * DT * DT * acc, vel + DT * acc])


def contact_flight(state):
    """Integrates the stiff penalty force of the floor with many small steps."""
    substeps = 2000
    h = DT / substeps

    def body(_, s):
        pos, vel = s[:2], s[2:]
        depth = jnp.maximum(0.05 - pos[1], 0.0)
        push = 4000.0 * depth * jnp.tanh(depth * 50.0) - 4.0 * vel[1] * (depth > 0)
        acc = jnp.array([-0.5, 0.0]) * vel[0] * (depth > 0) + jnp.array([0.0, 1.0]) * (push - 9.81)
        vel = vel + h * acc
        return jnp.concatenate([pos + h * vel, vel])

    return jax.lax.fori_loop(0, substeps, body, state)


def near_floor(state):
    return state[1] + DT * jnp.minimum(state[3], 0.0) < 0.08


def advance(state):
    return jax.lax.cond(near_floor(state), contact_flight, free_flight, state)  # the problem


advance_all = jax.jit(jax.vmap(advance))


class Rollout:
    def __init__(self, count, seed=0):
        rng = np.random.default_rng(seed)
        position = np.stack([rng.uniform(-1, 1, count), rng.uniform(0.5, 4.0, count)], 1)
        velocity = rng.normal(0, 0.5, (count, 2))
        self.state = np.concatenate([position, velocity], 1).astype(np.float32)

    def step(self):
        self.state = np.asarray(advance_all(self.state))

    def energy(self):
        return float(np.mean(0.5 * (self.state[:, 2:] ** 2).sum(1) + 9.81 * self.state[:, 1]))


def main():
    sim = Rollout(PARTICLES)
    for step in range(1, STEPS + 1):
        sim.step()
        if step % 20 == 0:
            print(f"step {step} energy {sim.energy():.4f}")
    print(f"final {sim.energy():.3f}")


if __name__ == "__main__":
    main()
