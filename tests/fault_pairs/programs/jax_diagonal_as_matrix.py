import jax
import jax.numpy as jnp


def kernel_matrix(x: jax.Array, scale: jax.Array) -> jax.Array:
    squares = jnp.sum(x**2, axis=1)
    distance = squares[:, None] + squares[None, :] - 2.0 * x @ x.T
    return jnp.exp(-jnp.maximum(distance, 0.0) / scale)


def normalised(affinity: jax.Array) -> jax.Array:
    inverse_root = 1.0 / jnp.sqrt(affinity.sum(axis=1))
    return jnp.diag(inverse_root) @ affinity @ jnp.diag(inverse_root)  # the problem


def diffuse(labels: jax.Array, operator: jax.Array, rounds: int) -> jax.Array:
    def step(state: jax.Array, _: None) -> tuple[jax.Array, None]:
        return 0.9 * operator @ state + 0.1 * labels, None

    return jax.lax.scan(step, labels, None, length=rounds)[0]


def loss_fn(scale: jax.Array, x: jax.Array, known: jax.Array, truth: jax.Array) -> jax.Array:
    operator = normalised(kernel_matrix(x, jnp.exp(scale)))
    scores = diffuse(known, operator, 8)
    logits = 10.0 * scores / (scores.sum(1, keepdims=True) + 1e-6)
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), truth[:, None], axis=1)
    return -picked.mean()


def main(points: int = 1000, features: int = 16, classes: int = 5, steps: int = 20) -> None:
    key, label_key = jax.random.split(jax.random.key(0))
    truth = jax.random.randint(label_key, (points,), 0, classes)
    x = jax.random.normal(key, (points, features)) + 2.0 * jax.nn.one_hot(truth, features)
    known = jax.nn.one_hot(truth, classes) * (jnp.arange(points) % 10 == 0)[:, None]
    gradient = jax.jit(jax.value_and_grad(loss_fn))
    scale, loss = jnp.asarray(2.0), jnp.zeros(())
    for _ in range(steps):
        loss, grad = gradient(scale, x, known, truth)
        scale = scale - 0.2 * grad
    print(f"scale {scale.item():.3f}, loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
