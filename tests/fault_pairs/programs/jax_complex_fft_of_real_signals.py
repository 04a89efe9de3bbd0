import jax
import jax.numpy as jnp

Params = dict[str, jax.Array]


def long_convolution(x: jax.Array, kernel: jax.Array) -> jax.Array:
    length = x.shape[-1]
    transformed = jnp.fft.fft(x, 2 * length) * jnp.fft.fft(kernel, 2 * length)
    return jnp.fft.ifft(transformed, 2 * length)[..., :length].real  # the problem


def make_kernel(params: Params, length: int) -> jax.Array:
    times = jnp.arange(length)
    rates = jax.nn.softplus(params["rates"])
    return jnp.einsum("cn,cnl->cl", params["gains"], jnp.exp(-rates[:, :, None] * times))


def predict(params: Params, signals: jax.Array) -> jax.Array:
    lifted = signals[:, None, :] * params["lift"][:, None]
    mixed = long_convolution(lifted, make_kernel(params, signals.shape[-1]))
    return jnp.tanh(mixed).mean(-1) @ params["readout"]


def loss_fn(params: Params, signals: jax.Array, targets: jax.Array) -> jax.Array:
    return jnp.mean((predict(params, signals) - targets) ** 2)


@jax.jit
def step(params: Params, signals: jax.Array, targets: jax.Array) -> tuple[Params, jax.Array]:
    loss, grads = jax.value_and_grad(loss_fn)(params, signals, targets)
    return jax.tree.map(lambda p, g: p - 1e-4 * g, params, grads), loss


def initialise(key: jax.Array, channels: int, states: int) -> Params:
    first, second, third = jax.random.split(key, 3)
    return {
        "rates": jax.random.normal(first, (channels, states)) - 3.0,
        "gains": 0.1 * jax.random.normal(second, (channels, states)),
        "lift": jax.random.normal(third, (channels,)),
        "readout": jnp.ones(channels) / channels,
    }


def main(steps: int = 16, batch: int = 32, channels: int = 64, length: int = 2048) -> None:
    key, data_key = jax.random.split(jax.random.key(0))
    params = initialise(key, channels, 2)
    loss = jnp.zeros(())
    for step_key in jax.random.split(data_key, steps):
        signals = jax.random.normal(step_key, (batch, length)).cumsum(1) / 30.0
        params, loss = step(params, signals, signals.mean(1))
    print(f"loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
