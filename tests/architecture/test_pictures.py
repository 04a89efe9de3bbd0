"""The pictures of the documentation are shown somewhere; those of the README are small, the first moves."""

from __future__ import annotations

import re
import struct
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
MOST_BYTES = 1_000_000
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")


def test_every_picture_is_shown_and_described() -> None:
    shown = set()
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = page.read_text(encoding="utf-8")
        shown |= {(page.parent / target).resolve() for target in PICTURE.findall(text)}
        assert "![](" not in text, f"{page.name}: a picture without a description"
    assert shown == set(IMAGES.iterdir())


def test_the_pictures_of_the_readme_are_small_and_the_first_moves() -> None:
    names = PICTURE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    pictures = [(ROOT / name).read_bytes() for name in names]
    assert max(len(data) for data in pictures) < MOST_BYTES
    assert _frames(pictures[0]) > 1


def _frames(data: bytes) -> int:
    """Return how many frames an animated WebP has (RIFF chunks named ANMF)."""
    assert data[:4] == b"RIFF"
    assert data[8:12] == b"WEBP"
    count, place = 0, 12
    while place < len(data):
        name, size = struct.unpack_from("<4sI", data, place)
        count += name == b"ANMF"
        place += 8 + size + size % 2
    return count
