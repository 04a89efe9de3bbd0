"""The smallest next experiment of a finding: one line to change, and the commands that measure the change.

Does not run anything.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from deepcontext.profiler.format.frame import FrameKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile_model import ProfileModel

_AFTER = "after.dcprof"


def experiment(profile: ProfileModel, nodes: Sequence[int]) -> str:
    """Return what to change and what to run then, "" for a finding without a line of the program."""
    frame = user_frame(profile, nodes)
    if frame is None:
        return ""
    folder = profile.run.cwd.rstrip("/") + "/"
    file = frame.file.removeprefix(folder) if profile.run.cwd else frame.file
    script = profile.run.script
    program = shlex.join([script, *arguments_of(profile)]) if script.endswith(".py") else "PROGRAM"
    return (
        f"change {file}:{frame.line}; run 'deepcontext profile -o {_AFTER} {program}', then "
        f"'deepcontext analyze BEFORE --verify {_AFTER}' with this profile as BEFORE"
    )


def arguments_of(profile: ProfileModel) -> tuple[str, ...]:
    """Return the arguments that a script was run with; none where they are not known."""
    command, script = profile.run.command, profile.run.script
    return tuple(command[command.index(script) + 1 :]) if script in command else ()


def user_frame(profile: ProfileModel, nodes: Sequence[int]) -> Frame | None:
    """Return the innermost Python frame of the user's code above the first node."""
    if not nodes:
        return None
    tree, is_user = profile.tree, profile.frames.is_user_code()
    node = int(nodes[0])
    while node > 0:
        frame = int(tree.frame[node])
        if is_user[frame] and profile.frames.kind[frame] == FrameKind.PYTHON:
            return profile.frame(node)
        node = int(tree.parent[node])
    return None
