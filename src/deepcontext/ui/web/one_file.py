"""Write the page as one HTML file that needs neither server nor network.

The file holds the page's script, its style, and what the script would ask a server for: the profiles as
columns (`columns.py`), findings, sections, source text, rooflines, time lines and ranks (`ranks.py`). Scripts
of views that few pages show are in the file only if the file shows any.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from deepcontext.errors import DeepContextError
from deepcontext.profiler.format.writing import FileKind
from deepcontext.profiler.summaries.ranks import rank_count
from deepcontext.ui.web.about import about, section, shown_sections
from deepcontext.ui.web.account import account_answer
from deepcontext.ui.web.answers import ErrorAnswer
from deepcontext.ui.web.columns import packed_columns
from deepcontext.ui.web.container import pack
from deepcontext.ui.web.findings import findings
from deepcontext.ui.web.fitting import fitting
from deepcontext.ui.web.json_text import to_json
from deepcontext.ui.web.ranks import packed_ranks
from deepcontext.ui.web.roofline import has_roofline, roofline
from deepcontext.ui.web.source_choice import chosen_texts
from deepcontext.ui.web.source_text import NO_TEXT
from deepcontext.ui.web.static_files import STATIC
from deepcontext.ui.web.time_line import steps_of_page, steps_shown, time_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deepcontext.ui.web.open_profiles import OpenProfiles

_GENERATOR: Final = '<meta name="generator" content="deepcontext">'
# The head of the template is shorter than this.
_HEAD_BYTES: Final = 1000
_QUICK: Final = 6
_SMALLEST: Final = 9
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
    shown, left_out = fitting(profiles, _size)
    notices = (*(() if profiles.source_text else (NO_TEXT,)), *left_out)
    return Page(_fill("\n".join(page_data(shown, notices)), _scripts(shown)), notices)


def _scripts(profiles: OpenProfiles) -> list[str]:
    numbers = range(len(profiles))
    needed = {
        "app.js": True,
        "jobs.js": bool(profiles.jobs or _with_ranks(profiles)),
        "roofline.js": any(has_roofline(profiles.get(n).profile) for n in numbers),
        "timeline.js": any(steps_shown(profiles.get(n).profile) for n in numbers),
    }
    return [name for name, is_needed in needed.items() if is_needed]


def _size(profiles: OpenProfiles) -> int:
    """Return about how many bytes some profiles take in a page."""
    each = (len(_container(profiles, index, level=_QUICK)) for index in range(len(profiles)))
    return sum(each) * 4 // 3  # base64


def page_data(profiles: OpenProfiles, notices: tuple[str, ...] = ()) -> list[str]:
    """Return what the page reads, in base64: the answer to `about`, then a container a profile.

    If any profile has ranks, a container a profile with its ranks follows, empty for one process.
    """
    parts = [gzip.compress(to_json(about(profiles, notices)).encode(), mtime=0)]
    numbers = range(len(profiles))
    parts += [_container(profiles, index, level=_SMALLEST) for index in numbers]
    if ranked := _with_ranks(profiles):
        parts += [_ranks(profiles, index) if index in ranked else b"" for index in numbers]
    return [base64.b64encode(part).decode() for part in parts]


def _with_ranks(profiles: OpenProfiles) -> list[int]:
    return [n for n in range(len(profiles)) if rank_count(profiles.get(n).profile)]


def _ranks(profiles: OpenProfiles, index: int) -> bytes:
    try:
        return packed_ranks(profiles.get(index).profile, level=_SMALLEST)
    except DeepContextError as error:
        return gzip.compress(pack(to_json(ErrorAnswer(str(error))), {}), mtime=0)


def _container(profiles: OpenProfiles, index: int, *, level: int) -> bytes:
    """Return columns, and the answers that a page would ask its server for."""
    profile = profiles.get(index).profile
    more = {
        "account": _answer(lambda: account_answer(profile, with_text=profiles.source_text)),
        "findings": _answer(lambda: findings(profiles, index)),
        "roofline": _answer(lambda: roofline(profiles, index)),
        "section": {
            name: _answer(partial(section, profiles, index, name))
            for name in shown_sections(profile)
        },
        "text": chosen_texts(profile, with_text=profiles.source_text),
        "timeline": _answer(lambda: time_line(profile)),
        "step": _answer(lambda: steps_of_page(profile)),
    }
    return packed_columns(profile, more, level=level)


def _answer(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except DeepContextError as error:
        # The page says why, where the server would.
        return ErrorAnswer(str(error))


def _fill(packed: str, names: Sequence[str]) -> str:
    """Put scripts, style and answers where the served page refers to them."""
    scripts = [_script(name) for name in names]
    engine = _script("engine.js")
    style = (STATIC / "app.css").read_text("utf-8")
    icon = base64.b64encode((STATIC / "icon.svg").read_bytes()).decode()
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_digest, [*scripts, engine]))}; "
        # The page makes its engine's thread from text of its own, which inherits this policy.
        f"worker-src blob:; style-src {_digest(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    meta = '<meta charset="utf-8">'
    policy_meta = f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">'
    data = f'<script type="application/octet-stream" id="deepcontext-data">{packed}</script>'
    held = f'<script type="application/octet-stream" id="deepcontext-engine">{engine}</script>'
    parts = {
        meta: f"{meta}\n{_GENERATOR}\n{policy_meta}",
        'href="static/icon.svg"': f'href="data:image/svg+xml;base64,{icon}"',
        '<link rel="stylesheet" href="static/app.css">': f"<style>{style}</style>",
        '<script src="static/app.js"></script>': "\n".join([
            data,
            held,
            *(f"<script>{script}</script>" for script in scripts),
        ]),
    }
    text = (STATIC / "index.html").read_text("utf-8")
    for old, new in parts.items():
        if text.count(old) != 1:
            raise AssertionError(f"index.html must contain {old!r} once")
        text = text.replace(old, new)
    return text


def _script(name: str) -> str:
    return (STATIC / name).read_text("utf-8").replace("</script", "<\\/script")


def _is_page(head: bytes) -> bool:
    return head.startswith(b"<!doctype html>") and _GENERATOR.encode() in head[:_HEAD_BYTES]


def _digest(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
