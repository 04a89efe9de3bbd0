"""Recurrent model of event streams; every batch holds streams of similar length."""
import jax
import jax.numpy as jnp
import numpy as np

KINDS = 12
HIDDEN = 48
BATCH = 16
BATCHES = 9


def init(key):
    k = jax.random.split(key, 4)
    return {
        "embed": jax.random.normal(k[0], (KINDS, HIDDEN)) * 0.3,
        "wx": jax.random.normal(k[1], (HIDDEN, 3 * HIDDEN)) * 0.15,
        "wh": jax.random.normal(k[2], (HIDDEN, 3 * HIDDEN)) * 0.15,
        "out": jax.random.normal(k[3], (HIDDEN, KINDS)) * 0.15,
    }


def cell(params, h, x):
    gx = x @ params["wx"]
    gh = h @ params["wh"]
    r, z = jnp.split(jax.nn.sigmoid(gx[:, : 2 * HIDDEN] + gh[:, : 2 * HIDDEN]), 2, axis=1)
    n = jnp.tanh(gx[:, 2 * HIDDEN :] + r * gh[:, 2 * HIDDEN :])
    return (1 - z) * n + z * h


def loss_fn(params, events, mask):
    x = params["embed"][events[:, :-1]]

    def step(h, xt):
        h = cell(params, h, xt)
        return h, h @ params["out"]

    h0 = jnp.zeros((events.shape[0], HIDDEN))
    _, logits = jax.lax.scan(step, h0, x.swapaxes(0, 1))
    logp = jax.nn.log_softmax(logits.swapaxes(0, 1))
    picked = jnp.take_along_axis(logp, events[:, 1:, None], axis=2)[..., 0]
    return -(picked * mask[:, 1:]).sum() / mask[:, 1:].sum()


@jax.jit
def update(params, events, mask):
    loss, grads = jax.value_and_grad(loss_fn)(params, events, mask)
    return jax.tree_util.tree_map(lambda p, g: p - 0.5 * g, params, grads), loss


class EventStreams:
    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.jump = self.rng.permutation(KINDS)

    def stream(self, length):
        out = np.empty(length, np.int32)
        out[0] = self.rng.integers(KINDS)
        for i in range(1, length):
            out[i] = self.jump[out[i - 1]] if self.rng.random() < 0.8 else self.rng.integers(KINDS)
        return out

    def batch(self, size):
        longest = int(self.rng.integers(40, 200))
        lengths = self.rng.integers(longest // 2, longest + 1, size)
        lengths[0] = longest
        return [self.stream(n) for n in lengths]


def collate(streams):
    width = max(len(s) for s in streams)  # the problem
    events = np.zeros((len(streams), width), np.int32)
    mask = np.zeros((len(streams), width), np.float32)
    for i, s in enumerate(streams):
        events[i, : len(s)] = s
        mask[i, : len(s)] = 1.0
    return events, mask


def main():
    params = init(jax.random.PRNGKey(0))
    data = EventStreams()
    total = 0.0
    for i in range(1, BATCHES + 1):
        events, mask = collate(data.batch(BATCH))
        params, loss = update(params, events, mask)
        total += float(loss)
        if i % 3 == 0:
            print(f"batch {i} loss {total / i:.4f}")
    print(f"final {total / BATCHES:.4f}")


if __name__ == "__main__":
    main()
