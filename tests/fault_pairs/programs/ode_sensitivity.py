"""Fits the parameters of a predator-prey model by gradient descent through the integrator."""
import jax
import jax.numpy as jnp

STEPS = 8
DT = 0.2
ITERATIONS = 60
ANIMALS = 8


def rates(theta, y):
    prey, hunter = y[:, 0], y[:, 1]
    a, b, c, d = theta
    dprey = a * prey - b * prey * hunter / (1.0 + 0.1 * prey)
    dhunter = -c * hunter + d * prey * hunter / (1.0 + 0.1 * prey)
    return jnp.stack([dprey, dhunter], axis=1)


def rk4(theta, y):
    k1 = rates(theta, y)
    k2 = rates(theta, y + 0.5 * DT * k1)
    k3 = rates(theta, y + 0.5 * DT * k2)
    k4 = rates(theta, y + DT * k3)
    return y + DT / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)


def simulate(theta, y0):
    path = []
    y = y0
    for _ in range(STEPS):
        y = rk4(theta, y)  # the problem
        path.append(y)
    return jnp.stack(path)


def misfit(log_theta, y0, observed):
    path = simulate(jnp.exp(log_theta), y0)
    return jnp.mean((jnp.log(path) - jnp.log(observed)) ** 2)


class Observations:
    def __init__(self, key, animals):
        k0, k1 = jax.random.split(key)
        self.start = 1.0 + jax.random.uniform(k0, (animals, 2))
        truth = jnp.array([1.0, 0.8, 1.1, 0.6])
        clean = jax.jit(simulate)(truth, self.start)
        self.values = clean * jnp.exp(0.05 * jax.random.normal(k1, clean.shape))


class Fit:
    def __init__(self, guess, lr=0.05):
        self.log_theta = jnp.log(jnp.array(guess))
        self.lr = lr
        self.gradient = jax.jit(jax.value_and_grad(misfit))

    def run(self, data, iterations):
        for i in range(1, iterations + 1):
            loss, grad = self.gradient(self.log_theta, data.start, data.values)
            norm = jnp.sqrt(jnp.sum(grad**2))
            self.log_theta = self.log_theta - self.lr * grad / jnp.maximum(1.0, norm)
            if i % 20 == 0:
                print(f"iteration {i} misfit {float(loss):.5f}")
        return float(loss)


def main():
    data = Observations(jax.random.PRNGKey(0), ANIMALS)
    fit = Fit([0.8, 0.6, 1.3, 0.8])
    final = fit.run(data, ITERATIONS)
    print(f"final {final:.4f}")


if __name__ == "__main__":
    main()
