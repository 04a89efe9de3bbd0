"""A profile as one nested dictionary of JSON's types, for programs that read all of it.

Views use the columns: for a million nodes this dictionary is about a hundred times larger.
"""

from __future__ import annotations

import base64
import dataclasses
from typing import TYPE_CHECKING, Any

from deepcontext.profiler.format.frame import Phase

if TYPE_CHECKING:
    from deepcontext.profiler.model.metric_rows import MetricRows
    from deepcontext.profiler.model.profile_model import ProfileModel


def profile_to_dict(profile: ProfileModel) -> dict[str, Any]:
    """Return the answer of `Profile.to_dict`, which describes it."""
    return {
        "run": _run(profile),
        "trust": {
            **dataclasses.asdict(profile.trust),
            "collectors": [_collector(report) for report in profile.trust.collectors],
            "notes": list(profile.trust.notes),
        },
        "metrics": [
            {
                **dataclasses.asdict(rows.descriptor),
                "aggregation": rows.descriptor.aggregation.name.lower(),
            }
            for rows in profile.stored_metrics().values()
        ],
        "sections": {
            name: base64.b64encode(payload).decode() for name, payload in profile.sections.items()
        },
        "tree": _tree(profile),
    }


def _run(profile: ProfileModel) -> dict[str, Any]:
    return {**dataclasses.asdict(profile.run), "command": list(profile.run.command)}


def _collector(report: Any) -> dict[str, Any]:
    return {**dataclasses.asdict(report), "status": str(report.status)}


def _tree(profile: ProfileModel) -> dict[str, Any]:
    tree = profile.tree
    # In pre-order a parent is built before its children, so a deep tree needs no recursion.
    nodes: list[dict[str, Any]] = []
    for node, (parent, phase) in enumerate(
        zip(tree.parent.tolist(), tree.phase.tolist(), strict=True)
    ):
        frame = profile.frame(node)
        nodes.append({
            "id": node,
            "kind": frame.kind.label,
            "name": frame.name,
            "file": frame.file,
            "line": frame.line,
            "phase": Phase(phase).label,
            "metrics": {},
            "children": [],
        })
        if node:
            nodes[parent]["children"].append(nodes[node])
    for rows in profile.stored_metrics().values():
        _add_values(nodes, rows)
    return nodes[0]


def _add_values(nodes: list[dict[str, Any]], rows: MetricRows) -> None:
    for index, node in enumerate(rows.node.tolist()):
        nodes[node]["metrics"][rows.descriptor.name] = rows.row(index)
