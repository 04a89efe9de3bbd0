"""All that a program can see of the profiler is on one page, with the reason."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "what-a-program-can-see.md"
PROGRAM = """\
import gc, json, os, signal, sys, time
import torch
time.sleep(0.5)  # a snapshot has been written

def name(thing):
    return getattr(thing, "__name__", type(thing).__name__)

def status(field):
    with open("/proc/self/status") as file:
        return next(line.split()[1] for line in file if line.startswith(field))

def entries(folder, read):
    found = []
    for each in os.listdir(folder):
        try:
            found.append(read(os.path.join(folder, each)))
        except OSError:  # it has ended
            pass
    return found

roots = {each.partition(".")[0] for each in sys.modules}
handled = int(status("SigCgt"), 16)
import atexit
print(json.dumps({
    "atexit": [f"handler {n}" for n in range(atexit._ncallbacks())],
    "gc.callbacks": [*map(name, gc.callbacks)],
    "os.environ": [*os.environ],
    "sys.meta_path": [*map(name, sys.meta_path)],
    "sys.modules": sorted(roots - sys.stdlib_module_names),
    "sys.path": sys.path,
    "sys.path_hooks": [*map(name, sys.path_hooks)],
    "descriptor": entries("/proc/self/fd", os.readlink),
    "signal handler": [s.name for s in signal.valid_signals()
                       if isinstance(s, signal.Signals) and handled >> s - 1 & 1],
    "thread": entries("/proc/self/task", lambda path: open(path + "/comm").read().strip()),
}))
"""


def _seen(outcome: Any) -> Counter[tuple[str, str]]:
    found = json.loads(outcome.stdout).items()
    return Counter((kind, re.sub(r"[0-9]+", "N", each)) for kind, names in found for each in names)


def test_what_a_program_can_see_is_what_the_page_lists(same_as_python: Any) -> None:
    same_as_python.folder.joinpath("program.py").write_text(PROGRAM, encoding="utf-8")
    plain = same_as_python.run([sys.executable, "program.py"])
    command = same_as_python.profile_command("program.py")
    profiled = same_as_python.run(command, is_profiled=True)
    added = _seen(profiled) - _seen(plain)
    # A snapshot may be written at this moment.
    added -= Counter(each for each in added.elements() if ".deepcontext.N.N.tmp" in each[1])
    rows = re.findall(r"^\| `(.*?)` \| `(.*?)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(added) ^ set(rows) == set()
