"""Files of weights that stay in memory after a model got a copy of them.

`load_state_dict` copies what `torch.load` read. If something still refers to the file's tensors, the weights
are in memory twice, and what else the file has (the state of an optimizer) once for nothing. Silent at a peak
that no model's run is part of, because while a model is loaded, both have to be there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_LEAST_SHARE: Final = 0.25
_SAVING: Final = "torch/serialization.py"
_PARAMETERS: Final = "peak_parameter_bytes"


def loaded_files(profile: Profile, prefix: str, peak: int) -> list[Finding]:
    """Report the line that reads what is held at the peak although a model has a copy.

    Args:
        profile: the profile.
        prefix: of the metrics of a kind of memory.
        peak: most bytes held at once.
    """
    metric = f"{prefix}peak_bytes"
    if metric not in profile.metrics or CALL_DURATION_NS.name not in profile.metrics:
        return []
    reads = _reads(profile)
    copies = source_locations.operators(profile, {"aten::copy_"}).under(
        source_locations.nodes_named(profile, FrameKind.PYTHON, {"Module.load_state_dict"})
    )
    modules = source_locations.outermost(Query(profile, profile.is_kind(FrameKind.MODULE)))
    in_use = modules.total(metric, inclusive=True)
    if not reads.count() or not copies.count() or not in_use:
        return []
    # Copied more often than read: the tensors are kept to start from them again.
    inside = profile.tree.at_or_below(reads.mask())
    pieces = int(counts_or_zeros(profile, metric)[inside].sum())
    copied = int(counts_or_zeros(profile, CALL_DURATION_NS.name)[copies.nodes()].sum())
    held = reads.total(metric, inclusive=True)
    if _gives_to_optimizer(profile):
        # An optimizer takes the file's tensors themselves.
        held = min(held, total(profile, f"{prefix}{_PARAMETERS}"))
    if copied > pieces or held < _LEAST_SHARE * peak:
        return []
    line = source_locations.by_line(reads, metric)[0]
    share = held / peak
    return [
        Finding(
            id="memory",
            severity=Severity.of_share(share),
            title=(
                f"what {source_locations.location_text(profile, line.frame)} read from a file is still held "
                f"at the peak, {share:.0%} of the memory, although a model has a copy of its weights"
            ),
            nodes=line.nodes[:8],
            evidence={metric: held, "peak_share": share, "tensors_count": pieces},
            gain=Gain(metric, held, share, "only the model holds its weights"),
            advice=(
                "let go of the file's tensors after load_state_dict (del, or a function of its own that "
                "returns the model), or use torch.load(..., mmap=True), which reads only what is copied; "
                "load_state_dict(..., assign=True) makes no copy"
            ),
            misleads="the tensors are used again, for example to start from the same weights once more",
        )
    ]


def _reads(profile: Profile) -> Query:
    """Select the calls of `torch.load`."""
    frames = profile.frames
    of_torch = np.array(
        [
            frames.strings[int(file)].replace("\\", "/").endswith(_SAVING)
            for file in frames.file.tolist()
        ],
        np.bool_,
    )
    loads = source_locations.nodes_named(profile, FrameKind.PYTHON, {"load"}).mask()
    return source_locations.outermost(Query(profile, loads & of_torch[profile.tree.frame]))


def _gives_to_optimizer(profile: Profile) -> bool:
    return bool(
        source_locations.nodes_named(
            profile, FrameKind.PYTHON, {"Optimizer.load_state_dict"}
        ).count()
    )
