"""Random walks in a pool of processes; the parent collects them."""

import multiprocessing

import numpy as np


def walk(seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    steps = random.choice([-1, 1], size=(400, 5000))
    return np.abs(steps.cumsum(1)).max(1)


def main() -> None:
    with multiprocessing.Pool(2) as pool:
        farthest = np.concatenate(pool.map(walk, range(120), chunksize=4))
    print(f"mean {farthest.mean():.1f}")


if __name__ == "__main__":
    main()
