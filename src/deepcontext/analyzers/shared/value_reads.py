"""Reads of values from tensors that would be on a GPU.

A profile does not record where a tensor came from. Uncertain reads are left out, because a missed
read costs nothing, but a false report costs trust. Does not judge how many reads are too many.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers import catalogue
from deepcontext.analyzers.shared import libraries, source_locations
from deepcontext.analyzers.shared.called_operators import functions_of_nodes
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

# Library code that reads tensors on the CPU: samplers' indices, sizes of packed batches, optimizers'
# step numbers.
_ON_CPU: Final = re.compile(r"/torch/(utils/data/|nn/utils/rnn\.py$|nn/modules/rnn\.py$|optim/)")


def value_reads(profile: Profile) -> Query:
    """Select the reads that block a program whose model is on a GPU.

    Left out are reads by operators of torch's C++ code, by code whose tensors stay on the CPU, and by
    functions that run no part of a model.
    """
    asked = source_locations.apart(asked_reads(profile))
    on_cpu = libraries.of_files(profile, _is_on_cpu)[profile.tree.frame]
    asked = source_locations.without(asked, Query(profile, on_cpu))
    nodes = asked.nodes()
    if not len(nodes):
        return asked
    functions = functions_of_nodes(profile)
    mask = np.zeros(len(profile.tree), np.bool_)
    mask[nodes] = np.isin(functions[nodes], _computing(profile, functions))
    return Query(profile, mask)


def asked_reads(profile: Profile) -> Query:
    """Select the reads of tensors' values by Python code, on any device."""

    def compute() -> Query:
        reads = source_locations.operators(profile, catalogue.operators("reads_value")).phase(
            "none", "forward", "other"
        )
        reads = source_locations.outermost(reads)
        return Query(profile, reads.mask() & ~_within_operators(profile))

    return profile.once(asked_reads, compute)


def _within_operators(profile: Profile) -> source_locations.Mask:
    """Return which nodes an operator called, except for indexing by a mask, shape (nodes,)."""
    tree = profile.tree
    masked = source_locations.nodes_named(
        profile, FrameKind.OPERATOR, catalogue.operators("index_by_mask")
    ).mask()
    asker = tree.nearest(~masked)[tree.parent]
    return np.asarray((profile.frames.kind == FrameKind.OPERATOR)[tree.frame[asker]])


def _is_on_cpu(file: str) -> bool:
    return _ON_CPU.search(file) is not None


def _computing(profile: Profile, functions: source_locations.Ints) -> source_locations.Ints:
    """Return the functions that run modules or products, or are called by a module."""
    tree = profile.tree
    modules = profile.is_kind(FrameKind.MODULE)
    products = source_locations.nodes_named(
        profile, FrameKind.OPERATOR, catalogue.operators("dense")
    ).mask()
    is_above = tree.at_or_above(modules | products)
    is_user = profile.is_user_code()[tree.frame]
    return np.unique(functions[is_user & (is_above | tree.below(modules))])
