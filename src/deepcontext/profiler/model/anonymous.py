"""A profile without private names: folders and files of the user, users, hosts, jobs and command lines.

Each name becomes a token, the same one in every profile, so that anonymised profiles can be compared. Names
of functions, modules, operators, kernels and ranges stay, and so do paths within installed packages.
Invariant: source text and sections that cannot be searched for names are left out, and a note says so.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import zlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format import source_text
from deepcontext.profiler.format.node_sections import EXEMPLARS, WINDOWS
from deepcontext.profiler.format.user_code import is_user_file
from deepcontext.profiler.model.job import packing
from deepcontext.profiler.model.store.messages import message_class

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.model.frame_table import FrameTable
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.run_info import RunInfo
    from deepcontext.profiler.model.trust import TrustReport

# What is behind these folders is public: packages, the standard library, torch, the profiler.
_PUBLIC: Final = re.compile(
    r"/(site-packages|dist-packages)/|/lib(64)?/python3[^/]*/|/torch/|/deepcontext/(?=profiler|ui|collectors)"
)
# A folder that `is_user_file` takes for one of libraries.
_GENERATED: Final = "/.cache/"
_ABSOLUTE: Final = re.compile(r"(?<![\w.)\]>])(?:/[\w.@+~-]+){2,}")
_HOME: Final = re.compile(r"/(?:home|[Uu]sers|export/home)/([^/]+)")
_SHORTEST_WORD: Final = 3
_SUFFIX: Final = re.compile(r"(?:\.[a-z]\w{0,7}){1,2}$")


def anonymised(profile: Profile) -> Profile:
    """Return a profile without private names."""
    names = _Names(profile)
    found = {
        name: None if name == source_text.SECTION else _section(name, each, names)
        for name, each in profile.sections.items()
    }
    sections = {name: each for name, each in found.items() if each is not None}
    trust = _trust(profile.trust, names)
    if lost := ", ".join(sorted(set(found) - set(sections))):
        text = f"left out to keep private names out: {lost}"
        trust = dataclasses.replace(trust, notes=(*trust.notes, text))
    return dataclasses.replace(
        profile,
        frames=_frames(profile.frames, names),
        run=_run(profile.run, names),
        trust=trust,
        sections=sections,
        source="",
    )


def token(name: str) -> str:
    """Return what stands for a name; "" for none."""
    return f"anon-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:8]}" if name else ""


class _Names:
    """The private names of a profile, and what stands for each."""

    def __init__(self, profile: Profile) -> None:
        run, frames = profile.run, profile.frames
        numbers: list[int] = np.unique(frames.file).tolist()
        files = [frames.strings[each] for each in numbers]
        private = {file for file in files if is_user_file(file) and not file.startswith("<")}
        private |= {run.cwd, *([run.script] if run.script.endswith(".py") else [])}
        self._known = {file: path(file) for file in private if file}
        # A file stands in texts by its last part, too.
        last = {file.replace("\\", "/").rpartition("/")[2] for file in private}
        self._known |= {file: path(file) for file in last if file.endswith(".py")}
        users = {name for file in (*files, run.cwd, *run.command) for name in _HOME.findall(file)}
        hosts = {run.hostname, run.hostname.partition(".")[0]}
        words = users | hosts
        self._known |= {word: token(word) for word in words if len(word) >= _SHORTEST_WORD}
        longest = sorted(self._known, key=len, reverse=True)
        self._pattern = re.compile(
            rf"(?<!\w)(?:{'|'.join(map(re.escape, longest))})(?!\w)" if longest else r"(?!)"
        )

    def text(self, text: str) -> str:
        """Return a text with tokens for private names in it, and for absolute paths."""
        if found := self._known.get(text):
            return found
        text = _ABSOLUTE.sub(lambda match: path(match[0]), text)
        return self._pattern.sub(lambda match: self._known[match[0]], text)


def path(text: str) -> str:
    """Return a path with tokens for its folders and its file; what is public in it stays."""
    if text.startswith("<"):
        return text
    text = text.replace("\\", "/")
    if not is_user_file(text):
        public = list(_PUBLIC.finditer(text))
        return text[public[-1].start() :] if public else f"{_GENERATED}{_part(text)}"
    return "/".join(map(_part, text.split("/")))


def _part(text: str) -> str:
    found = _SUFFIX.search(text)
    suffix = found[0] if found and found.start() else ""
    stem = text.removesuffix(suffix) if suffix else text
    return token(stem) + suffix if stem.strip(".") else text


def _frames(frames: FrameTable, names: _Names) -> FrameTable:
    strings: dict[str, int] = {}

    def renamed(column: Any, rename: Callable[[str], str]) -> Any:
        used, place = np.unique(column, return_inverse=True)
        before: list[int] = used.tolist()
        texts = [rename(frames.strings[each]) for each in before]
        numbers = [strings.setdefault(text, len(strings)) for text in texts]
        return np.array(numbers, np.uint32)[place] if numbers else column

    name, file = renamed(frames.name, names.text), renamed(frames.file, path)
    return dataclasses.replace(frames, name=name, file=file, strings=tuple(strings))


def _run(run: RunInfo, names: _Names) -> RunInfo:
    kind, _, what = run.script.partition(" ")
    script = f"{kind} {token(what)}" if kind in {"-m", "-c"} else path(run.script)
    reason = ": ".join(run.exit_reason.split(": ")[:2])
    return dataclasses.replace(
        run,
        command=tuple(
            path(word)
            if word.endswith(".py")
            else word.rpartition("/")[2]
            if not n
            else token(word)
            for n, word in enumerate(run.command)
        ),
        script=script,
        cwd=path(run.cwd),
        platform=names.text(run.platform),
        hostname=token(run.hostname),
        exit_reason=names.text(reason),
        options={name: _option(value, names) for name, value in run.options.items()},
        process_name=token(run.process_name),
        pid_space=token(run.pid_space),
    )


def _option(value: str, names: _Names) -> str:
    is_file = "/" in value or _SUFFIX.search(value)
    return "/".join(map(_part, value.split("/"))) if is_file else names.text(value)


def _trust(trust: TrustReport, names: _Names) -> TrustReport:
    collectors = [
        dataclasses.replace(
            each,
            reason=names.text(each.reason),
            details={
                name: _part(value) if name == "file" else names.text(value)
                for name, value in each.details.items()
            },
        )
        for each in trust.collectors
    ]
    notes = tuple(map(names.text, trust.notes))
    return dataclasses.replace(trust, collectors=tuple(collectors), notes=notes)


def _section(name: str, payload: bytes, names: _Names) -> bytes | None:
    """Return a section without private names; None for one that cannot be searched."""
    if name == WINDOWS:  # numbers alone
        return payload
    if name == EXEMPLARS:
        table: Any = message_class("ExemplarTable").FromString(payload)
        for exemplar in table.exemplars:
            for lane in exemplar.lanes:
                lane.name = names.text(lane.name)
        encoded: bytes = table.SerializeToString()
        return encoded
    for decode, encode in _CONTAINERS:
        try:
            content = json.loads(decode(payload))
        except (ValueError, zlib.error):
            continue
        return encode(json.dumps(_walked(content, names)).encode())
    try:
        packed = packing.unpack(payload, name)
    except ProfileDataError:
        return None
    return packing.pack(_walked(packed.facts, names, _OF_RANKS), packed.columns)


# Facts about ranks.
_PRIVATE: Final = frozenset({"hostname", "host", "process_name", "pid_space", "script", "command"})
_OF_RANKS: Final = _PRIVATE | {"name"}  # the file that a rank's profile was read from
_CONTAINERS: Final = ((bytes, bytes), (zlib.decompress, zlib.compress))


def _walked(value: Any, names: _Names, private: frozenset[str] = _PRIVATE) -> Any:
    if isinstance(value, str):
        return names.text(value)
    if isinstance(value, list):
        return [_walked(each, names, private) for each in value]
    if isinstance(value, dict):
        return {
            names.text(key): token(each)
            if key in private and isinstance(each, str)
            else _walked(each, names, private)
            for key, each in value.items()
        }
    return value
