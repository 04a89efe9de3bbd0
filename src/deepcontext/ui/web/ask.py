"""Every question that a page asks its server, by the question's name in the address.

The page computes everything about trees, tables and lines from columns (`columns.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.errors import QueryError
from deepcontext.ui.web.about import one_profile, section
from deepcontext.ui.web.account import account_answer
from deepcontext.ui.web.columns import packed_columns
from deepcontext.ui.web.findings import findings
from deepcontext.ui.web.one_file import make_page
from deepcontext.ui.web.ranks import packed_ranks
from deepcontext.ui.web.roofline import roofline
from deepcontext.ui.web.source_text import source_text
from deepcontext.ui.web.time_line import step, time_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deepcontext.ui.web.answers import (
        AccountAnswer,
        FindingsAnswer,
        ProfileAnswer,
        RooflineAnswer,
        SectionAnswer,
        SourceText,
        StepAnswer,
        TimeLineAnswer,
    )
    from deepcontext.ui.web.open_profiles import OpenProfiles

    Query = Mapping[str, str]

# A page on this machine waits for the compression, and not for the network.
_FASTEST: Final = 1


def file_of(query: Query) -> int:
    """Return the index of the profile that a question is about.

    Raises:
        QueryError: the text is not a whole number.
    """
    return number_of(query, "file")


def number_of(query: Query, name: str) -> int:
    """Return a number of a question, 0 where the question does not have it.

    Raises:
        QueryError: the text is not a whole number.
    """
    text = query.get(name, "")
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal()) or len(text) > 15:  # noqa: PLR2004  fits int64
        raise QueryError(f"'{name}' must be a whole number, found '{text[:40]}'")
    return int(text)


def _columns(profiles: OpenProfiles, query: Query) -> bytes:
    opened = profiles.get(file_of(query))
    return profiles.keep(
        ("columns", opened.version), lambda: packed_columns(opened.profile, level=_FASTEST)
    )


def _ranks(profiles: OpenProfiles, query: Query) -> bytes:
    opened = profiles.get(file_of(query))
    return profiles.keep(
        ("ranks", opened.version), lambda: packed_ranks(opened.profile, level=_FASTEST)
    )


def _roofline(profiles: OpenProfiles, query: Query) -> RooflineAnswer:
    return roofline(profiles, file_of(query))


def _findings(profiles: OpenProfiles, query: Query) -> FindingsAnswer:
    return findings(profiles, file_of(query))


def _profile(profiles: OpenProfiles, query: Query) -> ProfileAnswer:
    return one_profile(profiles, file_of(query))


def _current(profiles: OpenProfiles, query: Query) -> str:
    """Return the version of a profile; asked when somebody comes back to the page."""
    profiles.check()
    return profiles.get(file_of(query)).version


def _section(profiles: OpenProfiles, query: Query) -> SectionAnswer:
    return section(profiles, file_of(query), query.get("name", ""))


def _step(profiles: OpenProfiles, query: Query) -> StepAnswer:
    return step(profiles.get(file_of(query)).profile, query.get("name", ""))


def _time_line(profiles: OpenProfiles, query: Query) -> TimeLineAnswer:
    return time_line(profiles.get(file_of(query)).profile)


def _one_file(profiles: OpenProfiles, _: Query) -> bytes:
    """Return this page as one file; bytes, because no browser may run it at the server's address."""
    profiles.check()
    for index in profiles.loaded():
        profiles.get(index)  # raises if its file has changed
    return make_page(profiles).text.encode()


def _text(profiles: OpenProfiles, query: Query) -> SourceText:
    profile = profiles.get(file_of(query)).profile
    return source_text(profile, query.get("path", ""), with_text=profiles.source_text)


def _account(profiles: OpenProfiles, query: Query) -> AccountAnswer:
    profile = profiles.get(file_of(query)).profile
    return account_answer(profile, with_text=profiles.source_text)


QUESTIONS: Final[dict[str, Callable[[OpenProfiles, Query], object]]] = {
    "account": _account,
    "columns": _columns,
    "current": _current,
    "findings": _findings,
    "one_file": _one_file,
    "profile": _profile,
    "ranks": _ranks,
    "roofline": _roofline,
    "section": _section,
    "step": _step,
    "text": _text,
    "timeline": _time_line,
}
