"""PyTorch's settings at the end of a session, and the types its processor computes in fast.

Reads the section "torch_settings"; what is not recorded is None or empty.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

SECTION: Final = "torch_settings"


@dataclass(frozen=True, slots=True)
class TorchSettings:
    """Settings of one process.

    Attributes:
        threads: threads that one operator may compute with; 0 if not known.
        cores: processors that the process may use; 0 if not known.
        fast_types: types of 16 bits ("bf16", "f16") with instructions for products; None if not known.
    """

    threads: int = 0
    cores: int = 0
    fast_types: frozenset[str] | None = None


def torch_settings(profile: Profile) -> TorchSettings:
    """Return the settings; those of older profiles are not known."""
    try:
        content = json.loads(profile.sections[SECTION])
        fast = content.get("fast_types")
        return TorchSettings(
            threads=int(content["threads"]),
            cores=int(content["cores"]),
            fast_types=None if fast is None else frozenset(map(str, fast)),
        )
    except (KeyError, ValueError, TypeError, AttributeError):
        return TorchSettings()
