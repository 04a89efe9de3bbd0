"""Follow the skill of many players from match to match with a compiled Bayesian update."""

import jax
import jax.numpy as jnp
import numpy as np

Skills = dict[str, tuple[jax.Array, jax.Array]]


class League:
    """Results of rounds in which all players meet in random pairs."""

    def __init__(self, players: int) -> None:
        self.random = np.random.default_rng(0)
        self.strength = self.random.normal(size=players)
        self.names = [f"player {number:03d}" for number in range(players)]

    def round(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        order = self.random.permutation(len(self.names)).astype(np.int32)
        home, away = order[::2], order[1::2]
        chance = 1 / (1 + np.exp(self.strength[away] - self.strength[home]))
        return home, away, (self.random.random(len(home)) < chance).astype(np.float32)


@jax.jit
def update(skills: Skills, home: jax.Array, away: jax.Array, won: jax.Array) -> Skills:
    means = jnp.stack([mean for mean, _ in skills.values()])
    spreads = jnp.stack([spread for _, spread in skills.values()])
    variance = spreads[home] ** 2 + spreads[away] ** 2
    scale = jnp.sqrt(1 + jnp.pi * variance / 8)
    surprise = won - jax.nn.sigmoid((means[home] - means[away]) / scale)
    change = jnp.zeros_like(means)
    change = change.at[home].add(spreads[home] ** 2 * surprise)
    change = change.at[away].add(-(spreads[away] ** 2) * surprise)
    means, spreads = means + change, jnp.maximum(0.98 * spreads, 0.2)
    return {
        name: (means[place], spreads[place])  # the problem
        for place, name in enumerate(skills)
    }


def start(league: League) -> Skills:
    return {name: (jnp.zeros(()), jnp.ones(())) for name in league.names}


def best(skills: Skills, count: int) -> list[str]:
    means = {name: float(mean) for name, (mean, _) in skills.items()}
    return sorted(means, key=means.__getitem__, reverse=True)[:count]


def main(players: int, rounds: int) -> None:
    league = League(players)
    skills = start(league)
    for _ in range(rounds):
        skills = update(skills, *league.round())
    print(best(skills, 3))


if __name__ == "__main__":
    main(players=160, rounds=3000)
