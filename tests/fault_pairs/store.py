"""Keep recorded profiles in the repository, without the names and paths of the machine that recorded them.

usage: python -m tests.fault_pairs.store FOLDER

Takes the profiles of the pairs that the table has as "stored" from FOLDER (record.py), and writes
profiles/NAME_problem.dcprof, profiles/NAME_healthy.dcprof and profiles/index.toml.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import json
import shutil
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

import deepcontext
from deepcontext.profiler.format import rank_collectives
from deepcontext.profiler.model.job import sections as job_sections
from deepcontext.profiler.model.job.packing import pack, unpack
from deepcontext.profiler.model.profile import Profile
from tests.fault_pairs.judging import path_of
from tests.fault_pairs.pairs import HERE, pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PROFILES: Final = HERE / "profiles"
_INDEX = """# Written by store.py: the profiles beside this file, of the programs in ../programs.
command = "python -m tests.fault_pairs.record"
version = "{version}"
recorded = {recorded}
python = "{python}"
cpu_model = "{cpu_model}"
cpu_count = {cpu_count}

[frameworks]
{frameworks}
"""


def portable(profile: Profile, folder: Path) -> Profile:
    """Return a profile without the machine's names, and with its files below /pairs, /venv and /python."""
    places = {str(folder): "/pairs", str(HERE.parents[1]): "/deepcontext"}
    return moved(profile, places | {sys.prefix: "/venv", sys.base_prefix: "/python"})


def moved(profile: Profile, places: Mapping[str, str]) -> Profile:
    """Return a profile without the machine's names, and with its folders at other places."""

    def move(text: str) -> str:
        for here, there in sorted(places.items(), key=lambda place: -len(place[0])):
            text = text.replace(here, there)
        return text

    frames, run, trust = profile.frames, profile.run, profile.trust
    collectors = [
        dataclasses.replace(
            each,
            reason=move(each.reason),
            details={name: move(text) for name, text in each.details.items()},
        )
        for each in trust.collectors
    ]
    return dataclasses.replace(
        profile,
        frames=dataclasses.replace(frames, strings=[move(each) for each in frames.strings]),
        run=dataclasses.replace(
            run,
            command=tuple(map(move, run.command)),
            script=move(run.script),
            cwd=move(run.cwd),
            platform="",
            hostname="",
            pid_space="",
        ),
        trust=dataclasses.replace(
            trust, collectors=tuple(collectors), notes=tuple(map(move, trust.notes))
        ),
        sections={name: _moved(name, content, move) for name, content in profile.sections.items()},
    )


def _moved(name: str, content: bytes, move: Callable[[str], str]) -> bytes:
    """Return a section with other paths: JSON, of a merged profile with columns or compressed."""
    if name in job_sections.ALL:
        packed = unpack(content, name)
        facts = json.loads(move(json.dumps(packed.facts)))
        for row in facts.get("rows", ()):
            row["hostname"] = ""
        return pack(facts, packed.columns)
    if name in rank_collectives.JOINED:
        return zlib.compress(move(zlib.decompress(content).decode()).encode())
    return move(content.decode()).encode() if content[:1] in {b"{", b"["} else content


def store(folder: Path) -> None:
    """Store the profiles of a folder.

    Raises:
        ValueError: a program had several processes, whose profiles are several files.
    """
    shutil.rmtree(PROFILES, ignore_errors=True)
    PROFILES.mkdir()
    runs = []
    for pair in pairs().values():
        for kind in pair.kinds if pair.stored else ():
            recorded = path_of(folder, pair.name, kind)
            if recorded.is_dir():
                raise ValueError(f"{recorded} has several profiles")
            profile = portable(Profile.load(recorded), folder)
            profile.save(PROFILES / recorded.name)
            runs.append(profile.run)
    frameworks = {name: version for run in runs for name, version in run.frameworks.items()}
    first = min(runs, key=lambda run: run.start_unix_ns)
    (PROFILES / "index.toml").write_text(
        _INDEX.format(
            version=deepcontext.__version__,
            recorded=dt.datetime.fromtimestamp(first.start_unix_ns / 1e9, dt.UTC).date(),
            python=first.python,
            cpu_model=first.cpu_model,
            cpu_count=first.cpu_count,
            frameworks="\n".join(f'{name} = "{frameworks[name]}"' for name in sorted(frameworks)),
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    store(parser.parse_args().folder.resolve())


if __name__ == "__main__":
    main()
