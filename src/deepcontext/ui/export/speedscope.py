"""speedscope's JSON: one list of frames, and for each measure the paths with their weights.

Source: the schema in speedscope's package, file-format-schema.json.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.format.writing import FileKind
from deepcontext.ui.export.formats import Format

if TYPE_CHECKING:
    from deepcontext.ui.export.stacks import Stacks
    from deepcontext.ui.measures import Measure

_SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"
_UNITS: Final = {"ns": "nanoseconds", "bytes": "bytes"}


def encode(stacks: Stacks) -> bytes:
    """Return the file's content; speedscope first shows the first measure."""
    run = stacks.profile.run
    paths = list(stacks.paths())
    document = {
        "$schema": _SCHEMA,
        "exporter": "deepcontext",
        "name": run.script or " ".join(run.command) or "profile",
        "activeProfileIndex": 0,
        "shared": {"frames": _frames(stacks)},
        "profiles": [
            _sampled(measure, values, paths)
            for measure, values in zip(stacks.measures, stacks.values.tolist(), strict=True)
        ],
    }
    return json.dumps(document, separators=(",", ":")).encode()


def _frames(stacks: Stacks) -> list[dict[str, Any]]:
    frames = []
    for index in range(len(stacks.profile.frames)):
        frame = stacks.profile.frames[index]
        place: dict[str, Any] = {"name": frame.name or "(unnamed)"}
        if frame.file:
            place["file"] = frame.file
        if frame.line:
            place["line"] = frame.line
        frames.append(place)
    return frames


def _sampled(
    measure: Measure, values: list[int], paths: list[tuple[int, list[int]]]
) -> dict[str, Any]:
    costly = [(path, values[node]) for node, path in paths if values[node]]
    return {
        "type": "sampled",
        "name": f"{measure.label} ({measure.key})",
        "unit": _UNITS.get(measure.unit, "none"),
        "startValue": 0,
        "endValue": sum(value for _, value in costly),
        "samples": [path for path, _ in costly],
        "weights": [value for _, value in costly],
    }


FORMAT: Final = Format(
    encode,
    ".speedscope.json",
    # Other programs also write this format; `encode` writes these fields first.
    FileKind.beginning_with(
        "a speedscope file of deepcontext",
        f'{{"$schema":"{_SCHEMA}","exporter":"deepcontext",'.encode(),
    ),
    opened_by="npx speedscope {}",
)
