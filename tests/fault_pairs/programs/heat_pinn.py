"""Physics-informed network for u'' = f on the unit interval."""
import jax
import jax.numpy as jnp

POINTS = 64
WIDTH = 32
STEPS = 12


def init(key, sizes=(1, WIDTH, WIDTH, 1)):
    params = []
    for m, n in zip(sizes[:-1], sizes[1:]):
        key, sub = jax.random.split(key)
        params.append((jax.random.normal(sub, (m, n)) / jnp.sqrt(m), jnp.zeros(n)))
    return params


def network(params, x):
    h = x[:, None]
    for w, b in params[:-1]:
        h = jnp.tanh(h @ w + b)
    w, b = params[-1]
    return (h @ w + b)[:, 0]


def solution(params, x):
    return x * (1 - x) * network(params, x)


def source(x):
    return -(jnp.pi**2) * jnp.sin(jnp.pi * x)


def second_derivative(params, x):
    def first(z):
        return jnp.diagonal(jax.jacfwd(lambda y: solution(params, y))(z))  # the problem

    return jnp.diagonal(jax.jacfwd(first)(x))


def residual_loss(params, x):
    return jnp.mean((second_derivative(params, x) - source(x)) ** 2)


def adam_init(params):
    zeros = jax.tree_util.tree_map(jnp.zeros_like, params)
    return zeros, zeros


@jax.jit
def update(params, moments, x, t):
    loss, grads = jax.value_and_grad(residual_loss)(params, x)
    m, v = moments
    m = jax.tree_util.tree_map(lambda a, g: 0.9 * a + 0.1 * g, m, grads)
    v = jax.tree_util.tree_map(lambda a, g: 0.999 * a + 0.001 * g * g, v, grads)

    def apply(p, a, b):
        return p - 3e-3 * (a / (1 - 0.9**t)) / (jnp.sqrt(b / (1 - 0.999**t)) + 1e-8)

    return jax.tree_util.tree_map(apply, params, m, v), (m, v), loss


class Sampler:
    def __init__(self, seed):
        self.key = jax.random.PRNGKey(seed)

    def points(self, n):
        self.key, sub = jax.random.split(self.key)
        return jax.random.uniform(sub, (n,))


def main():
    params = init(jax.random.PRNGKey(0))
    moments = adam_init(params)
    sampler = Sampler(1)
    for step in range(1, STEPS + 1):
        params, moments, loss = update(params, moments, sampler.points(POINTS), float(step))
        if step % 4 == 0:
            print(f"step {step} residual {float(loss):.4f}")
    print(f"final {float(loss):.3f}")


if __name__ == "__main__":
    main()
