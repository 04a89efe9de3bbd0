"""Scores boxes with a network and turns them into records for a report."""
import jax
import jax.numpy as jnp
import numpy as np

BOXES = 600
IMAGES = 24
FEATURES = 64
LABELS = ("person", "bicycle", "car", "dog", "sign")


def init(key):
    k = jax.random.split(key, 4)
    return {
        "w1": jax.random.normal(k[0], (FEATURES, 256)) * 0.1,
        "w2": jax.random.normal(k[1], (256, 256)) * 0.06,
        "cls": jax.random.normal(k[2], (256, len(LABELS))) * 0.2,
        "box": jax.random.normal(k[3], (256, 4)) * 0.1,
    }


@jax.jit
def detect(params, features):
    h = jax.nn.relu(features @ params["w1"])
    h = jax.nn.relu(h @ params["w2"])
    probability = jax.nn.softmax(h @ params["cls"])
    return probability.max(-1), probability.argmax(-1), jax.nn.sigmoid(h @ params["box"])


class ImageSource:
    def __init__(self, images, seed=0):
        self.images = images
        self.rng = np.random.default_rng(seed)

    def __iter__(self):
        for i in range(self.images):
            yield f"frame_{i:04d}", self.rng.standard_normal((BOXES, FEATURES)).astype(np.float32)


def to_records(name, scores, classes, boxes, threshold=0.3):
    records = []
    for i in range(len(scores)):
        score = float(scores[i])
        if score < threshold:
            continue
        cx, cy = float(boxes[i, 0]), float(boxes[i, 1])  # the problem
        records.append(
            {
                "image": name,
                "label": LABELS[int(classes[i])],
                "score": score,
                "centre": (cx, cy),
            }
        )
    return records


def overlap(a, b):
    return abs(a["centre"][0] - b["centre"][0]) + abs(a["centre"][1] - b["centre"][1]) < 0.01


def suppress(records, limit=120):
    kept = []
    for r in sorted(records, key=lambda r: -r["score"]):
        if len(kept) == limit:
            break
        if not any(k["label"] == r["label"] and overlap(k, r) for k in kept):
            kept.append(r)
    return kept


def main():
    params = init(jax.random.PRNGKey(0))
    counts = dict.fromkeys(LABELS, 0)
    total, n = 0.0, 0
    for name, features in ImageSource(IMAGES):
        scores, classes, boxes = detect(params, features)
        kept = suppress(to_records(name, scores, classes, boxes))
        for r in kept:
            counts[r["label"]] += 1
            total += r["score"]
            n += 1
    print(counts)
    print(f"final {total / n:.4f} of {n}")


if __name__ == "__main__":
    main()
