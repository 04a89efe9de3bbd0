"""Write the page as one HTML file that needs neither server nor network.

The file holds the page's script, its style and recorded answers to likely questions
(`recording.py`). Invariant: the answers equal the server's; nothing is computed twice.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.errors import DeepContextError
from deepcontext.profiler.format.writing import FileKind
from deepcontext.ui.format import format_bytes, format_count
from deepcontext.ui.web import recording
from deepcontext.ui.web.about import about
from deepcontext.ui.web.app import STATIC, to_json
from deepcontext.ui.web.ask import QUESTIONS
from deepcontext.ui.web.questions import FlameQuestion, spelling
from deepcontext.ui.web.source_pane import NO_TEXT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deepcontext.ui.web.open_profiles import OpenProfiles
    from deepcontext.ui.web.recording import Recorded

MOST_BYTES: Final = 10_000_000
_GENERATOR: Final = '<meta name="generator" content="deepcontext">'
# The head of the template is shorter than this.
_HEAD_BYTES: Final = 1000
KIND: Final = FileKind("a page of deepcontext", lambda head, _: _is_page(head))
# A tree of a million nodes takes about a second to make; this limit allows about half a minute.
_MOST_TREE_NODES: Final = 30_000_000
_SWITCHED_OFF: Final = (
    "this file holds recorded answers: at most two switches can differ from their initial position, "
    "and focus, hide, collapse and drop need 'deepcontext view'"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """The maximum size of a page.

    Attributes:
        size_bytes: maximum number of bytes of compressed answers, as written.
        tree_nodes: maximum number of nodes of all trees made.
    """

    size_bytes: int = MOST_BYTES
    tree_nodes: int = _MOST_TREE_NODES


@dataclass(frozen=True, slots=True)
class Page:
    """A finished page.

    Attributes:
        text: the HTML.
        notices: what was left out, for a reader.
    """

    text: str
    notices: tuple[str, ...]

    @property
    def size_bytes(self) -> int:
        """Return the size as written."""
        return len(self.text.encode())


def make_page(profiles: OpenProfiles, limits: Limits = Limits()) -> Page:
    """Return the page for some profiles.

    Args:
        profiles: the profiles.
        limits: the maximum size of the page.
    """
    answers, notices = _record(profiles, recording.questions(profiles), limits)
    if not profiles.source_text:
        notices = (*notices, NO_TEXT)
    answers["about"] = to_json(about(profiles.refresh(), notices))
    # Joined from texts that are JSON already, so that memory holds each large answer once.
    body = ",".join(f"{json.dumps(key)}:{text}" for key, text in answers.items())
    packed = gzip.compress(f"{{{body}}}".encode(), compresslevel=9, mtime=0)
    return Page(_fill(base64.b64encode(packed).decode()), notices)


def _record(
    profiles: OpenProfiles, questions: Iterable[Recorded], limits: Limits
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Answer questions until the limits are reached."""
    answers: dict[str, str] = {}
    size, nodes, left_out, cut = 0, 0, 0, 0
    for question in questions:
        key = spelling(question.what, question.query)
        if key in answers:
            continue
        if size >= limits.size_bytes or (question.is_tree and nodes >= limits.tree_nodes):
            left_out += 1
            continue
        try:
            text, missing = _answer(profiles, question)
        except DeepContextError:
            continue  # the page offers only recorded answers, and explains what is missing
        answers[key] = text
        cut = max(cut, missing) if question.px else cut
        # Base64 turns three bytes into four.
        size += len(zlib.compress(text.encode(), 1)) * 4 // 3
        nodes += len(profiles.get(_file_of(question)).profile.tree) if question.is_tree else 0
    return answers, _notices(cut, left_out, limits)


def _answer(profiles: OpenProfiles, question: Recorded) -> tuple[str, int]:
    """Return an answer as JSON, and how many nodes it leaves out."""
    query = {**question.query, "px": str(question.px)} if question.px else question.query
    answer = QUESTIONS[question.what](profiles, query)
    return to_json(answer), int(getattr(answer, "left_out", 0))


def _file_of(question: Recorded) -> int:
    return FlameQuestion.of_query({"file": question.query.get("file", "")}).tree.file


def _notices(cut: int, left_out: int, limits: Limits) -> tuple[str, ...]:
    notices = [_SWITCHED_OFF]
    if cut:
        notices.append(
            f"up to {format_count(cut)} of a graph's narrowest nodes are left out; they are part "
            "of the boxes above them"
        )
    if left_out:
        notices.append(
            f"{format_count(left_out)} less common combinations of switches are left out to keep "
            f"the file below {format_bytes(limits.size_bytes)} and the writing time short"
        )
    return tuple(notices)


def _fill(packed: str) -> str:
    """Put script, style and answers where the served page refers to them."""
    script = (STATIC / "app.js").read_text("utf-8").replace("</script", "<\\/script")
    style = (STATIC / "app.css").read_text("utf-8")
    icon = base64.b64encode((STATIC / "icon.svg").read_bytes()).decode()
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    meta = '<meta charset="utf-8">'
    policy_meta = f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">'
    answers = f'<script type="application/octet-stream" id="deepcontext-answers">{packed}</script>'
    parts = {
        meta: f"{meta}\n{_GENERATOR}\n{policy_meta}",
        'href="static/icon.svg"': f'href="data:image/svg+xml;base64,{icon}"',
        '<link rel="stylesheet" href="static/app.css">': f"<style>{style}</style>",
        '<script src="static/app.js"></script>': f"{answers}\n<script>{script}</script>",
    }
    text = (STATIC / "index.html").read_text("utf-8")
    for old, new in parts.items():
        if text.count(old) != 1:
            raise AssertionError(f"index.html must contain {old!r} once")
        text = text.replace(old, new)
    return text


def _is_page(head: bytes) -> bool:
    return head.startswith(b"<!doctype html>") and _GENERATOR.encode() in head[:_HEAD_BYTES]


def _digest(content: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
