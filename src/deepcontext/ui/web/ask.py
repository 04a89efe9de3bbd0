"""Every question of a page by its name in the address: one table for server and one-file page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.ui.web import node_pane, source_pane, tables
from deepcontext.ui.web.about import one_profile, section
from deepcontext.ui.web.findings import findings
from deepcontext.ui.web.flame import flame
from deepcontext.ui.web.questions import FlameQuestion, TreeQuestion, number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deepcontext.ui.web.answers import (
        FilesAnswer,
        FindAnswer,
        FindingsAnswer,
        FlameAnswer,
        NodeAnswer,
        ProfileAnswer,
        SectionAnswer,
        SourceAnswer,
        TableAnswer,
    )
    from deepcontext.ui.web.open_profiles import OpenProfiles

    Query = Mapping[str, str]


def _flame(profiles: OpenProfiles, query: Query) -> FlameAnswer:
    return flame(profiles, FlameQuestion.of_query(query))


def _node(profiles: OpenProfiles, query: Query) -> NodeAnswer:
    return node_pane.node(profiles, TreeQuestion.of_query(query), number(query, "source", 0))


def _find(profiles: OpenProfiles, query: Query) -> FindAnswer:
    return node_pane.find(profiles, TreeQuestion.of_query(query), query.get("text", ""))


def _table(profiles: OpenProfiles, query: Query) -> TableAnswer:
    tree = TreeQuestion.of_query(query)
    by, text = query.get("by", "operator"), query.get("text", "")
    return tables.table(profiles, tree.file, by, tree.metric, text)


def _files(profiles: OpenProfiles, query: Query) -> FilesAnswer:
    tree = TreeQuestion.of_query(query)
    return source_pane.files(profiles, tree.file, tree.metric)


def _source(profiles: OpenProfiles, query: Query) -> SourceAnswer:
    tree = TreeQuestion.of_query(query)
    return source_pane.source(profiles, tree.file, query.get("path", ""), tree.metric)


def _findings(profiles: OpenProfiles, query: Query) -> FindingsAnswer:
    return findings(profiles, number(query, "file", 0))


def _profile(profiles: OpenProfiles, query: Query) -> ProfileAnswer:
    return one_profile(profiles, number(query, "file", 0))


def _section(profiles: OpenProfiles, query: Query) -> SectionAnswer:
    return section(profiles, number(query, "file", 0), query.get("name", ""))


QUESTIONS: Final[dict[str, Callable[[OpenProfiles, Query], object]]] = {
    "flame": _flame,
    "node": _node,
    "find": _find,
    "table": _table,
    "files": _files,
    "source": _source,
    "findings": _findings,
    "section": _section,
    "profile": _profile,
}
