"""Causes that the catalogue alone describes: operators of a class, in functions with certain facts.

Asks whether a function does more than the size of its answer needs, by the operators that it calls and by
what these allocate. Has no knowledge of any operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepcontext.analyzers import catalogue
from deepcontext.analyzers.causes import Cause
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.places import ALLOCATED, Facts, Places, holds, query_of, value_of
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.grouping import sums
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepcontext.analyzers.catalogue import Entry
    from deepcontext.profiler.model.profile import Profile

_HOST = HOST_TIME_NS.name
_SIZES = ("largest(", "smallest(", "gradient(", "sized(")


def find(profile: Profile) -> Iterator[Cause]:
    """Return the causes of all entries that name a place."""
    if not source_locations.judged_total(profile, _HOST):
        return
    if total(profile, source_locations.DEVICE_TIME) or total(profile, source_locations.GPU_TIME):
        return
    for entry in catalogue.entries().values():
        if entry.place and not (_needs_sizes(entry) and ALLOCATED not in profile.metrics):
            yield from _causes(profile, entry)


def _needs_sizes(entry: Entry) -> bool:
    return any(size in each for each in entry.when for size in _SIZES)


def _causes(profile: Profile, entry: Entry) -> Iterator[Cause]:
    places = Places.of(profile)
    cost = places.mask(entry.cost)
    least = max(entry.least_share * total(profile, _HOST), entry.least_cost)
    functions = _costly(profile, places, cost, least)
    facts = {each: Facts(places, each, entry.cost) for each in functions}
    chosen = [each for each, fact in facts.items() if all(holds(one, fact) for one in entry.when)]
    if not chosen:
        return
    found = Query(profile, cost & np.isin(places.function, chosen))
    group = source_locations.by_line if entry.place == "line" else source_locations.by_function
    for location in group(source_locations.apart(found), _HOST, least):
        if location.frame is None or location.count < entry.least_calls:
            continue
        function = int(places.function[location.nodes[0]])
        fact = facts[function]
        shown = {name: value_of(each, fact) for name, each in entry.shows.items()}
        names = dict.fromkeys(
            source_locations.base_name(profile.frame(node).name) for node in location.nodes
        )
        yield Cause(
            key=entry.key,
            nodes=location.nodes,
            frame=location.frame,
            metric=_HOST,
            value=location.value,
            saved=_saved(profile, entry, location, fact),
            words={**shown, "calls": location.count, "operators": ", ".join(list(names)[:6])},
            evidence={"calls_count": location.count, **{k: round(v, 3) for k, v in shown.items()}},
        )


def _costly(
    profile: Profile, places: Places, cost: source_locations.Mask, least: float
) -> list[int]:
    """Return the functions whose operators of a class cost enough."""
    nodes = profile.tree.outermost(cost)
    if not len(nodes):
        return []
    function = places.function[nodes]
    spent = sums(function, places.time[nodes], int(function.max()) + 1)
    found: list[int] = np.flatnonzero(spent >= max(least, 1)).tolist()
    return found


def _saved(
    profile: Profile, entry: Entry, location: source_locations.Location, fact: Facts
) -> int | None:
    """Return the bound, ns: with the operators that cost less, too, or that re-read what copies evicted."""
    if entry.also == "caches":
        return source_locations.bound_of_copies(profile, _HOST, location.value).upper_bound
    if not entry.also:
        return None
    nodes = np.union1d(np.array(location.nodes), fact.nodes(entry.also))
    return source_locations.outermost(query_of(profile, nodes)).total(_HOST, inclusive=True)
