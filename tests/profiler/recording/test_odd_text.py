"""Text of the program of any kind: none raises into the program, and none costs the profile.

A lone surrogate (an undecodable byte of a file name) has no UTF-8 form and reads "?" in profiles.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deepcontext
from deepcontext.profiler.model.profile import Profile

if TYPE_CHECKING:
    from pathlib import Path

_ODD = ["", "\0", "a\0b", "na\udcffve", "\ud800", "\udfff\ud800", "\U0010ffff", "x" * (1 << 20)]
_TEXTS = st.text(st.characters(), max_size=40) | st.sampled_from(_ODD)


def _kept(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


@given(_TEXTS)
def test_a_scope_of_any_name_without_a_session(name: str) -> None:
    with deepcontext.scope(name):
        pass


@pytest.mark.long
@settings(max_examples=10)  # a session takes longer than a hundred names in it
@given(st.lists(_TEXTS, min_size=20, max_size=100))
def test_scopes_of_any_name_are_in_the_profile(names: list[str]) -> None:
    running = deepcontext.profile(None, snapshot_interval=0)
    with running:
        for name in names:
            with deepcontext.scope(name):
                pass
    assert running.result is not None
    found = {node.frame.name for node in running.result.query().kind("scope")}
    assert found == {_kept(name) for name in names}


# What each does with `odd`; all of it must be over by the end.
_PROGRAM = """
import os, sys, threading, time, types
import deepcontext
odd = eval(sys.argv[1])
path = os.fsencode(odd) if odd and "\\0" not in odd else b"plain"
os.mkdir(path)
os.chdir(path)
os.environ["DEEPCONTEXT_OF_A_TEST"] = os.fsdecode(path)
sys.argv.append(odd)
sys.orig_argv.append(odd)
module = types.ModuleType("transformers")
module.__version__ = odd
sys.modules["transformers"] = module
deepcontext.start(os.path.join(os.path.dirname(os.getcwd()), "out.dcprof"), cpu_rate=200)
over = threading.Event()
thread = threading.Thread(target=over.wait, name=odd)
thread.start()
with deepcontext.scope(odd):
    code = "end = time.thread_time() + 0.2\\nwhile time.thread_time() < end: pass"
    exec(compile(code, odd.replace("\\0", ""), "exec"))
deepcontext.stop()
over.set()
"""


@pytest.mark.parametrize(
    "odd", ["", "a\0b", "na\udcffve", "\udc80\udcfe", "x" * 200, "\u00e9\u4e2d"]
)
def test_a_program_full_of_odd_text_has_its_profile(odd: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, ascii(odd)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    profile = Profile.load(tmp_path / "out.dcprof")
    assert {node.frame.name for node in profile.query().kind("scope")} == {_kept(odd)}
    assert any(_kept(odd) in node.frame.name for node in profile.query().kind("thread"))
    report = [sys.executable, "-m", "deepcontext", "report", "--full", "out.dcprof"]
    done = subprocess.run(report, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_script_and_a_profile_whose_names_are_no_text(tmp_path: Path) -> None:
    odd = os.fsdecode(b"na\xffve")
    (tmp_path / f"{odd}.py").write_text("print(sum(range(3)))", encoding="utf-8")
    words = [sys.executable, "-m", "deepcontext", "profile", "-o", f"{odd}.dcprof", f"{odd}.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"3\n"), done.stderr
    assert Profile.load(tmp_path / f"{odd}.dcprof").run.command
