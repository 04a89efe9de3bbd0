"""Render views of a scene of soft spheres with a compiled renderer."""

import jax
import jax.numpy as jnp
import numpy as np

Pair = tuple[jax.Array, jax.Array]


class Settings:
    """How a view is rendered; passed as a static argument."""

    def __init__(self, size: int, samples: int, background: float) -> None:
        self.size = size
        self.samples = samples
        self.background = background


def directions(size: int) -> jax.Array:
    ticks = jnp.linspace(-0.6, 0.6, size)
    across, up = jnp.meshgrid(ticks, ticks)
    rays = jnp.stack([across, up, jnp.ones_like(across)], -1)
    return rays / jnp.linalg.norm(rays, axis=-1, keepdims=True)


def density(scene: dict[str, jax.Array], places: jax.Array) -> jax.Array:
    apart = places[..., None, :] - scene["centers"]
    return (scene["weights"] * jnp.exp(-jnp.sum(apart**2, -1) / scene["sizes"])).sum(-1)


@jax.jit(static_argnames="settings")
def render(scene: dict[str, jax.Array], camera: jax.Array, settings: Settings) -> jax.Array:
    depths = jnp.linspace(0.5, 5.0, settings.samples)
    rays = directions(settings.size)

    def march(state: Pair, depth: jax.Array) -> tuple[Pair, None]:
        light, clear = state
        thickness = density(scene, camera + depth * rays)
        absorbed = 1 - jnp.exp(-thickness * 4.5 / settings.samples)
        light = light + clear * absorbed * jnp.exp(-0.2 * depth)
        return (light, clear * (1 - absorbed)), None

    start = (jnp.zeros(rays.shape[:2]), jnp.ones(rays.shape[:2]))
    (light, clear), _ = jax.lax.scan(march, start, depths)
    return light + clear * settings.background


class Studio:
    def __init__(self, spheres: int, quality: int) -> None:
        random = np.random.default_rng(0)
        self.quality = quality
        self.scene = {
            "centers": jnp.asarray(random.uniform(-1, 1, (spheres, 3)) + np.array([0, 0, 2.5])),
            "sizes": jnp.asarray(random.uniform(0.01, 0.1, spheres)),
            "weights": jnp.asarray(random.uniform(0.5, 3, spheres)),
        }

    def settings(self) -> Settings:
        return Settings(48, 8 * self.quality, 0.1)

    def view(self, camera: np.ndarray) -> jax.Array:
        return render(self.scene, camera, self.settings())  # the problem

    def film(self, views: int) -> float:
        brightness = []
        for view in range(views):
            angle = view / views * 6.283
            camera = 0.3 * np.array([np.sin(angle), np.cos(angle), 0.0], np.float32)
            brightness.append(float(self.view(camera).mean()))
        return float(np.mean(brightness))


if __name__ == "__main__":
    print(f"mean brightness {Studio(spheres=40, quality=3).film(views=18):.4f}")
