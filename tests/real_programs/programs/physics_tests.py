"""A test file, as pytest runs it."""

import numpy as np
import pytest
import torch


@pytest.fixture(scope="module")
def orbits() -> np.ndarray:
    at, speed = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    rows = []
    for _ in range(60_000):
        speed = speed - 0.001 * at / np.linalg.norm(at) ** 3
        at = at + 0.001 * speed
        rows.append(at)
    return np.stack(rows)


def test_radius(orbits: np.ndarray) -> None:
    assert np.allclose(np.linalg.norm(orbits, axis=1), 1.0, atol=0.01)


@pytest.mark.parametrize("size", [64, 256, 512])
def test_inverse(size: int) -> None:
    matrix = torch.randn(size, size, dtype=torch.float64) + 50 * torch.eye(
        size, dtype=torch.float64
    )
    for _ in range(20):
        inverse = torch.linalg.inv(matrix)
    assert torch.allclose(matrix @ inverse, torch.eye(size, dtype=torch.float64), atol=1e-6)
