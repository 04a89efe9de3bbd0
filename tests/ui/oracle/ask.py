"""The page's questions, answered in Python: what the page's engine (`web/src/engine`) is held to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from deepcontext.ui.web.ask import QUESTIONS as OF_THE_SERVER
from deepcontext.ui.web.json_text import to_json
from tests.ui.oracle import node_pane, source_pane, tables
from tests.ui.oracle.flame import flame
from tests.ui.oracle.questions import FlameQuestion, TreeQuestion, number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deepcontext.ui.web.open_profiles import OpenProfiles
    from tests.ui.oracle.answers import (
        FilesAnswer,
        FindAnswer,
        FlameAnswer,
        NodeAnswer,
        SourceAnswer,
        TableAnswer,
    )

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


QUESTIONS: Final[dict[str, Callable[[OpenProfiles, Query], object]]] = {
    "flame": _flame,
    "node": _node,
    "find": _find,
    "table": _table,
    "files": _files,
    "source": _source,
    **OF_THE_SERVER,
}


def asked(profiles: OpenProfiles, question: str) -> Any:
    """Return the answer to a question such as ``flame?kind=bottom_up``, as JSON values."""
    what, _, query = question.partition("?")
    return json.loads(to_json(QUESTIONS[what](profiles, dict(parse_qsl(query)))))
