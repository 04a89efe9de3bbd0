"""Corrections of misspelled words, in plain Python."""

import random
import string
from collections import Counter


def distance(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def nearest(word: str, known: list[str]) -> str:
    return min(known, key=lambda each: distance(word, each))


def misspell(word: str, chance: random.Random) -> str:
    at = chance.randrange(len(word))
    return word[:at] + chance.choice(string.ascii_lowercase) + word[at + 1 :]


def main() -> None:
    chance = random.Random(0)
    known = ["".join(chance.choices(string.ascii_lowercase, k=8)) for _ in range(2000)]
    counts = Counter(nearest(misspell(chance.choice(known), chance), known) for _ in range(150))
    print(f"{len(counts)} words")


if __name__ == "__main__":
    main()
