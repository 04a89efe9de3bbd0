import jax
import jax.numpy as jnp


def decay(params: jax.Array, times: jax.Array) -> jax.Array:
    amplitudes, rates = params[:3], jax.nn.softplus(params[3:6])
    curves = amplitudes[:, None] * jnp.exp(-rates[:, None] * times)
    return curves.sum(0) * (1.0 + params[6] * jnp.sin(params[7] * times))


def residuals(params: jax.Array, times: jax.Array, observed: jax.Array) -> jax.Array:
    return decay(params, times) - observed


@jax.jit
def gauss_newton(
    params: jax.Array, damping: jax.Array, times: jax.Array, observed: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    error = residuals(params, times, observed)
    jacobian = jax.jacrev(residuals)(params, times, observed)  # the problem
    normal = jacobian.T @ jacobian + damping * jnp.eye(len(params))
    proposal = params - jnp.linalg.solve(normal, jacobian.T @ error)
    old = jnp.sum(error**2)
    new = jnp.sum(residuals(proposal, times, observed) ** 2)
    better = new < old
    damping = jnp.where(better, damping * 0.5, damping * 4.0)
    return jnp.where(better, proposal, params), damping, jnp.minimum(new, old)


def fit(
    start: jax.Array, times: jax.Array, observed: jax.Array, steps: int
) -> tuple[jax.Array, float]:
    params, damping = start, jnp.asarray(1.0)
    cost = jnp.zeros(())
    for _ in range(steps):
        params, damping, cost = gauss_newton(params, damping, times, observed)
    return params, cost.item()


def main(signals: int = 4, points: int = 2000, steps: int = 12) -> None:
    truth = jnp.array([1.0, 0.7, 0.4, 0.5, -0.5, -1.5, 0.1, 2.0])
    times = jnp.linspace(0.0, 10.0, points)
    for key in jax.random.split(jax.random.key(0), signals):
        noise, shift = jax.random.split(key)
        observed = decay(truth, times) + 0.01 * jax.random.normal(noise, times.shape)
        start = truth + 0.05 * jax.random.normal(shift, truth.shape)
        _, cost = fit(start, times, observed, steps)
        print(f"cost {cost:.4f}")


if __name__ == "__main__":
    main()
