"""The name under which a frame's file is compared between ranks.

Ranks run in containers with other folders, and generated files have other names in each process.
Decided by path alone, like `user_code.py`.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.frame import FrameKind

if TYPE_CHECKING:
    from deepcontext.profiler.model.run_info import RunInfo

_PACKAGES: Final = re.compile(r".*/(?:site-packages|dist-packages)/")
_STANDARD: Final = re.compile(r".*/lib(?:64)?/python3(?:\.\d+t?)?/|.*/lib/python3\d*\.zip/")
# Files of torch's Inductor and of Triton, in any cache folder, and modules of torch.fx.
# Source: torch/_inductor/codecache.py, get_path and code_hash; torch/fx/graph_module.py.
_GENERATED: Final = re.compile(
    r"""
      .*/(?:torchinductor_[^/]+|torch_compile_cache|inductor_cache)/.*
    | .*/(?P<start>[a-z2-7]{2})/c(?P=start)[a-z2-7]{40,}\.(?:py|so|cpp)
    | .*/torch_geometric(?:\.\w+)+_\w{8}\.py
    | <eval_with_key>\.\d+.*
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Folders:
    """Folders of one process that the same process on another machine may have elsewhere.

    Attributes:
        program: folder of the script, "" where unknown.
        working: working directory at the start, "" where unknown.
    """

    program: str
    working: str

    @classmethod
    def of(cls, run: RunInfo) -> Folders:
        """Return the folders of a run; of `-m module`, the program's folder is the working directory."""
        is_script = run.script and not run.script.startswith("-")
        script = posixpath.join(run.cwd, run.script) if is_script else ""
        program = posixpath.normpath(posixpath.dirname(script)) if script else run.cwd
        return cls(program if program not in {"/", "."} else "", run.cwd if run.cwd != "/" else "")


def joined_file(file: str, kind: FrameKind, folders: Folders) -> str:
    """Return the name by which a frame's file is compared.

    Args:
        file: the frame's file, "" for none.
        kind: the frame's kind; a native library outside site-packages is compared by its name.
        folders: folders of the process.
    """
    file = file.replace("\\", "/")
    if not file:
        return ""
    if _GENERATED.fullmatch(file):
        return "<generated>"
    for pattern, name in ((_PACKAGES, "<packages>/"), (_STANDARD, "<python>/")):
        matched = pattern.match(file)
        if matched:
            return name + file[matched.end() :]
    for folder, name in ((folders.program, "<program>/"), (folders.working, "<working>/")):
        if folder and file.startswith(folder + "/"):
            return name + file[len(folder) + 1 :]
    return posixpath.basename(file) if kind is FrameKind.NATIVE else file
