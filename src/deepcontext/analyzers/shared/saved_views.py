"""Parts of tensors that `torch.save` writes: a file gets all memory that a view is of.

A profile does not record what is saved. Recognised is a function that spends much time in `torch.save`, and
whose own operators only take parts of tensors. Does not judge functions that also compute or copy, such as a
training loop with checkpoints. Needs samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.cheaper_forms import Calls
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS, SAMPLED_WAIT_TIME_NS
from deepcontext.profiler.model.metric_values import inclusive_or_zeros
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_FILE: Final = "torch/serialization.py"
_SAVE: Final = "save"
_PARTS: Final = frozenset(
    f"aten::{name}"
    for name in (
        "select",
        "slice",
        "narrow",
        "split",
        "split_with_sizes",
        "chunk",
        "unbind",
        "tensor_split",
    )
)
# Views of all of a tensor.
_SHAPES: Final = frozenset(
    f"aten::{name}"
    for name in ("detach", "view", "reshape", "squeeze", "unsqueeze", "permute", "transpose", "t")
)
_LEAST_SHARE: Final = 0.15
# Fewer samples at the usual rate say little about a share.
_LEAST_NS: Final = 200_000_000


def saved_views(profile: Profile, whole: int) -> list[Finding]:
    """Report functions that take parts of tensors and spend much time on saving.

    Args:
        profile: the profile.
        whole: elapsed time of the main threads without imports and compiling, ns.
    """
    saves = _saves(profile)
    if not saves.any():
        return []
    calls = Calls(profile)
    parts, other = calls.of(_PARTS), calls.called & ~calls.of(_PARTS | _SHAPES)
    spent = inclusive_or_zeros(profile, SAMPLED_CPU_TIME_NS.name)
    spent = spent + inclusive_or_zeros(profile, SAMPLED_WAIT_TIME_NS.name)
    function = calls.function
    found = []
    for each in np.unique(function[saves]).tolist():
        is_own = function == each
        value = int(spent[saves & is_own].sum())
        is_parting = (parts & is_own).any() and not (other & is_own).any()
        if is_parting and value >= max(_LEAST_SHARE * whole, _LEAST_NS):
            found.append(_finding(profile, saves & is_own, spent, min(value, whole), whole))
    return found


def _saves(profile: Profile) -> source_locations.Mask:
    """Return which nodes are calls of `torch.save` by the program's own code, shape (nodes,)."""
    frames, tree = profile.frames, profile.tree
    saving = [number for number, text in enumerate(frames.strings) if text == _SAVE]
    files = [number for number, text in enumerate(frames.strings) if text.endswith(_FILE)]
    is_save = np.isin(frames.name, saving) & np.isin(frames.file, files)
    above = np.where(tree.parent == NO_NODE, 0, tree.parent)
    called = is_save[tree.frame] & frames.is_user_code()[tree.frame[above]]
    mask: source_locations.Mask = called & profile.is_kind(FrameKind.PYTHON)
    return mask


def _finding(
    profile: Profile,
    saves: source_locations.Mask,
    spent: source_locations.Ints,
    value: int,
    whole: int,
) -> Finding:
    nodes = Query(profile, saves).nodes()
    nodes = nodes[np.argsort(-spent[nodes], kind="stable")]
    where = source_locations.location_text(
        profile, profile.frame(int(profile.tree.parent[nodes[0]]))
    )
    share = value / whole
    return Finding(
        id="host_work",
        severity=Severity.of_share(share),
        title=(
            f"{where} saves what it takes out of larger tensors, {share:.0%} of the time: torch.save "
            "writes all memory that a view is of"
        ),
        nodes=tuple(nodes[:8].tolist()),
        evidence={"saving_ns": value, "saving_share": share},
        gain=Gain("elapsed time", value, share, "the parts alone take no time to write"),
        advice=(
            "save copies of the parts (part.clone()), so that a file does not hold the whole tensor; or save "
            "the whole tensor once"
        ),
        misleads="what is saved is no view, such as a whole tensor beside its parts",
    )
