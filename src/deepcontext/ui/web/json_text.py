"""Answers as JSON."""

from __future__ import annotations

import dataclasses
import json
from typing import Any


def to_json(answer: object) -> str:
    """Return an answer as compact JSON."""
    # Not `asdict`, because it copies every column number by number.
    return json.dumps(answer, default=_fields, separators=(",", ":"), allow_nan=False)


def _fields(answer: Any) -> dict[str, object]:
    return {field.name: getattr(answer, field.name) for field in dataclasses.fields(answer)}
