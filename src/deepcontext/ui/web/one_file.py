"""Write the page as one HTML file that needs neither server nor network.

The file holds the page's script, its style and the profiles as columns (`columns.py`). The script
computes the answers to all questions about trees, tables and lines (`web/src/engine`).
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deepcontext.errors import DeepContextError
from deepcontext.profiler.format.writing import FileKind
from deepcontext.ui.web.about import about
from deepcontext.ui.web.answers import ErrorAnswer
from deepcontext.ui.web.app import STATIC, to_json
from deepcontext.ui.web.ask import QUESTIONS
from deepcontext.ui.web.columns import engine_profile
from deepcontext.ui.web.container import pack
from deepcontext.ui.web.fitting import fitting
from deepcontext.ui.web.questions import spelling
from deepcontext.ui.web.source_pane import NO_TEXT

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.ui.web.open_profiles import OpenProfiles

_GENERATOR: Final = '<meta name="generator" content="deepcontext">'
# The head of the template is shorter than this.
_HEAD_BYTES: Final = 1000
KIND: Final = FileKind("a page of deepcontext", lambda head, _: _is_page(head))


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


def make_page(profiles: OpenProfiles) -> Page:
    """Return the page for some profiles."""
    shown, left_out = fitting(profiles, _packed_size)
    notices = (*(() if profiles.source_text else (NO_TEXT,)), *left_out)
    packed = gzip.compress(page_data(shown, notices), compresslevel=9, mtime=0)
    return Page(_fill(base64.b64encode(packed).decode()), notices)


def _packed_size(profiles: OpenProfiles) -> int:
    """Return about how many bytes some profiles take in a page."""
    return len(zlib.compress(page_data(profiles))) * 4 // 3


def page_data(profiles: OpenProfiles, notices: tuple[str, ...] = ()) -> bytes:
    """Return what the page's engine reads: columns of all profiles, and answers written here."""
    columns: dict[str, npt.NDArray[Any]] = {}
    facts = []
    answers = {"about": to_json(about(profiles, notices))}
    for index in range(len(profiles)):
        profile = profiles.get(index).profile
        engine = engine_profile(profile, source_text=profiles.source_text)
        facts.append(engine.facts)
        columns.update({f"{index}/{name}": column for name, column in engine.columns.items()})
        answers.update(_recorded(profiles, index, profile))
    # Joined from texts that are JSON already, so that memory holds each large answer once.
    body = ",".join(f"{json.dumps(key)}:{text}" for key, text in answers.items())
    return pack(f'{{"profiles":{to_json(facts)},"answers":{{{body}}}}}', columns)


def _recorded(profiles: OpenProfiles, index: int, profile: Profile) -> dict[str, str]:
    """Return the answers that do not come from columns: findings and sections."""
    file = {"file": str(index)} if index else {}
    wanted = [
        ("findings", file),
        *(("section", {**file, "name": name}) for name in profile.sections),
    ]
    answers = {}
    for what, query in wanted:
        try:
            answers[spelling(what, query)] = to_json(QUESTIONS[what](profiles, query))
        except DeepContextError as error:
            # The page says why, where the server would.
            answers[spelling(what, query)] = to_json(ErrorAnswer(str(error)))
    return answers


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
    data = f'<script type="application/octet-stream" id="deepcontext-data">{packed}</script>'
    parts = {
        meta: f"{meta}\n{_GENERATOR}\n{policy_meta}",
        'href="static/icon.svg"': f'href="data:image/svg+xml;base64,{icon}"',
        '<link rel="stylesheet" href="static/app.css">': f"<style>{style}</style>",
        '<script src="static/app.js"></script>': f"{data}\n<script>{script}</script>",
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
