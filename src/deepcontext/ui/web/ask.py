"""Every question a page can ask, by its name in the address: one table for server and file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.ui.web import node_pane, source_pane, tables
from deepcontext.ui.web.about import section
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
        SectionAnswer,
        SourceAnswer,
        TableAnswer,
    )
    from deepcontext.ui.web.shelf import Shelf

    Query = Mapping[str, str]


def _flame(shelf: Shelf, query: Query) -> FlameAnswer:
    return flame(shelf, FlameQuestion.of_query(query))


def _node(shelf: Shelf, query: Query) -> NodeAnswer:
    return node_pane.node(shelf, TreeQuestion.of_query(query), number(query, "source", 0))


def _find(shelf: Shelf, query: Query) -> FindAnswer:
    return node_pane.find(shelf, TreeQuestion.of_query(query), query.get("text", ""))


def _table(shelf: Shelf, query: Query) -> TableAnswer:
    tree = TreeQuestion.of_query(query)
    by, text = query.get("by", "operator"), query.get("text", "")
    return tables.table(shelf, tree.file, by, tree.metric, text)


def _files(shelf: Shelf, query: Query) -> FilesAnswer:
    tree = TreeQuestion.of_query(query)
    return source_pane.files(shelf, tree.file, tree.metric)


def _source(shelf: Shelf, query: Query) -> SourceAnswer:
    tree = TreeQuestion.of_query(query)
    return source_pane.source(shelf, tree.file, query.get("path", ""), tree.metric)


def _findings(shelf: Shelf, query: Query) -> FindingsAnswer:
    return findings(shelf, number(query, "file", 0))


def _section(shelf: Shelf, query: Query) -> SectionAnswer:
    return section(shelf, number(query, "file", 0), query.get("name", ""))


QUESTIONS: Final[dict[str, Callable[[Shelf, Query], object]]] = {
    "flame": _flame,
    "node": _node,
    "find": _find,
    "table": _table,
    "files": _files,
    "source": _source,
    "findings": _findings,
    "section": _section,
}
