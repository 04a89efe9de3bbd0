"""What a program can see of itself and of its interpreter is what plain python shows."""

from __future__ import annotations

import sys
from typing import Any

import pytest

SHOW_ITSELF = """\
import sys
print(sys.argv, sys.orig_argv, sys.path, sys.flags, sys.warnoptions, sys._xoptions)
main = sys.modules["__main__"]
print(__name__, globals().get("__file__"), __spec__, __package__, type(__loader__), __builtins__)
print(main.__dict__ is globals(), sorted(globals()))
"""
# Looks that change nothing for each other.
TOGETHER: dict[str, str] = {
    "threads": (
        "import threading\n"
        "print(threading.enumerate(), threading.active_count(), threading.main_thread())\n"
    ),
    "trace functions": (
        "import sys, threading\n"
        "print(sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile())\n"
    ),
    "coroutine and audit hooks": (
        "import sys\nprint(sys.get_asyncgen_hooks(), sys.get_coroutine_origin_tracking_depth())\n"
    ),
    "recursion": (
        "import sys\n"
        "def depth(n):\n"
        "    try:\n        return depth(n + 1)\n"
        "    except RecursionError:\n        return n\n"
        "print(sys.getrecursionlimit(), depth(0))\n"
    ),
    "heavy modules": (
        "import sys\n"
        "print([name for name in ('numpy', 'google.protobuf', 'rich', 'flask', 'torch', 'jax')"
        " if name in sys.modules])\n"
    ),
    "sitecustomize": "import sys\nprint(sys.modules.get('sitecustomize'))\n",
    "path caches": (
        "import sys\n"
        "print([name for name in sys.path_importer_cache if name.endswith('launch/path')])\n"
    ),
    "streams": (
        "import sys\n"
        "for s in (sys.stdin, sys.stdout, sys.stderr):\n"
        "    print(s.encoding, s.errors, s.line_buffering, s.isatty(), s.fileno())\n"
        "print(sys.displayhook, sys.excepthook, sys.unraisablehook, sys.getswitchinterval())\n"
    ),
    "garbage collector": (
        "import gc\n"
        "print(gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), gc.callbacks)\n"
    ),
    "random numbers": "import random\nrandom.seed(1)\nprint(random.random())\n",
    "locale": (
        "import locale, sys\nprint(locale.setlocale(locale.LC_ALL), sys.getfilesystemencoding())\n"
    ),
}
# Programs that print what might have changed.
LOOKS: dict[str, str] = {
    "environment": "import os\nprint(list(os.environ.items()))\n",
    "environment of the C library": (
        "import ctypes\n"
        "getenv = ctypes.CDLL(None).getenv\n"
        "getenv.restype = ctypes.c_char_p\n"
        "print(getenv(b'PYTHONPATH'), getenv(b'DEEPCONTEXT_LAUNCH'))\n"
    ),
    "file descriptors": "import os\nprint(os.open('program.py', os.O_RDONLY))\n",
    "warnings": (
        "import warnings\n"
        "print(warnings.filters)\n"
        "warnings.warn('seen', stacklevel=1)\nwarnings.warn('hidden', DeprecationWarning)\n"
    ),
    "logging": (
        "import logging\n"
        "print(logging.root.handlers, logging.root.level, logging.lastResort)\n"
        "logging.warning('seen')\n"
    ),
    "own source": "print(open(__file__).read())\n",
    "inspect own source": "import inspect\ndef f(): pass\nprint(inspect.getsource(f))\n",
    "standard input": "import sys\nprint(repr(sys.stdin.read()))\n",
    "process": (
        "import os\n"
        "print(os.getppid() == int(os.environ['PARENT']))\n"
        "print(os.getpgid(0) == os.getpgid(os.getppid()))\n"
        "print(os.getsid(0) == os.getsid(os.getppid()))\n"
    ),
    "the rest": "".join(f"print({name!r})\n{look}" for name, look in TOGETHER.items()),
}
# By default, PYTHONPATH differs: see test_children.py.
CHILDREN_NONE = ("--children", "none")
OUR_OPTIONS = ["-o", "x", "--shapes", "-h", "--", "-m", "--no-report", ""]


@pytest.mark.parametrize("source", LOOKS.values(), ids=LOOKS)
def test_program_sees_the_same(same_as_python: Any, source: str) -> None:
    import os

    options = CHILDREN_NONE if "environ" in source or "getenv" in source else ()
    environment = {"PARENT": str(os.getpid())}
    same_as_python(source, stdin=b"line\nlast", environment=environment, options=options)


def test_the_start_collects_no_garbage(same_as_python: Any) -> None:
    """When the program's garbage is found depends on how many objects were made before."""
    source = "import gc\nprint(sum(each['collections'] for each in gc.get_stats()))\n"
    same_as_python.folder.joinpath("program.py").write_text(source, encoding="utf-8")
    plain = same_as_python.run([sys.executable, "program.py"])
    command = same_as_python.profile_command("program.py")
    profiled = same_as_python.run(command, is_profiled=True)
    assert int(profiled.stdout) - int(plain.stdout) <= 4  # 26 when the start collects


@pytest.mark.parametrize(
    "words",
    [
        ["program.py"],
        ["program.py", *OUR_OPTIONS],
        ["./program.py", "a b", "ü"],
        ["sub/../program.py"],
        ["sub/script.py"],
        ["link.py"],
        ["-m", "program", *OUR_OPTIONS],
        ["-m", "package", "x"],
        ["-m", "package.module", "x"],
        ["-mpackage.module", "x"],
        ["-c", SHOW_ITSELF, *OUR_OPTIONS],
        ["sub"],
        ["-"],
    ],
    ids=" ".join,
)
def test_main_module_arguments_and_path(same_as_python: Any, words: list[str]) -> None:
    (same_as_python.folder / "link.py").symlink_to("sub/script.py")
    same_as_python(
        SHOW_ITSELF,
        words=words,
        files={
            "sub/script.py": "import sibling\n" + SHOW_ITSELF,
            "sub/sibling.py": "print('sibling', __name__)\n",
            "sub/__main__.py": "import sibling\n" + SHOW_ITSELF,
            "package/__init__.py": "print('package', __name__)\n",
            "package/__main__.py": "from package import module\n" + SHOW_ITSELF,
            "package/module.py": SHOW_ITSELF,
        },
        stdin=SHOW_ITSELF.encode() if words == ["-"] else b"",
    )


def test_zip_archive_as_program(same_as_python: Any) -> None:
    import zipfile

    with zipfile.ZipFile(same_as_python.folder / "app.zip", "w") as archive:
        archive.writestr("__main__.py", "import part\n" + SHOW_ITSELF)
        archive.writestr("part.py", "print('part', __file__)\n")
    same_as_python("", words=["app.zip", "x"])


def test_path_with_spaces_and_other_alphabets(same_as_python: Any) -> None:
    name = "ein örtchen/прог рамма 1.py"
    same_as_python("", words=[name, "ü"], files={name: SHOW_ITSELF})


def test_module_that_does_not_exist(same_as_python: Any) -> None:
    same_as_python.without_beginning("", words=["-m", "no_such_module"], status=1)


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONPATH": "lib"},
        {"PYTHONPATH": "lib:other"},
        {"PYTHONPATH": ""},
        {"PYTHONPATH": ":lib"},
        {"PYTHONSAFEPATH": "1", "PYTHONPATH": "lib"},
        {"PYTHONWARNINGS": "error", "PYTHONHASHSEED": "7"},
        {"PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=str,
)
def test_variables_of_the_interpreter_reach_the_program(
    same_as_python: Any, environment: dict[str, str]
) -> None:
    same_as_python(
        "import os, subprocess, sys\n" + SHOW_ITSELF + LOOKS["environment"] + "try:\n"
        "    import lent\n"
        "except ImportError as error:\n    print(error)\n"
        "child = 'import os, sys; print(os.environ.get(\"PYTHONPATH\"), sys.path)'\n"
        "sys.stdout.flush()\n"
        "subprocess.run([sys.executable, '-c', child])\n",
        files={"lib/lent.py": "print('lent')\n"},
        environment=environment,
        options=CHILDREN_NONE,
    )


@pytest.mark.parametrize(
    "statement",
    [
        "print('own sitecustomize', __name__, __file__)",
        "raise ValueError('broken')",
        "import no_such_module",
        "sys.path.append('/added')",
    ],
    ids=["prints", "raises", "fails to import", "changes sys.path"],
)
def test_sitecustomize_of_the_user_runs(same_as_python: Any, statement: str) -> None:
    # It runs in the interpreter of the command line tool too; only the program is compared.
    text = f"import sys\nif 'profile' not in sys.orig_argv:\n    {statement}\n"
    same_as_python(
        SHOW_ITSELF + "print('sitecustomize' in sys.modules)\n",
        files={"site/sitecustomize.py": text},
        environment={"PYTHONPATH": "site"},
    )


def test_modules_named_like_the_profilers_beside_the_script(same_as_python: Any) -> None:
    names = ["profiler", "ui", "collectors", "analyzers", "launch", "bootstrap", "cli", "report"]
    same_as_python(
        "".join(f"import {name}\nprint({name}.__file__)\n" for name in names),
        files={f"{name}.py": f"print('own', {name!r})\n" for name in names},
    )


SHADOWS = ["json", "queue", "random", "inspect", "dataclasses", "shlex", "platform", "struct"]


def test_modules_named_like_the_standard_library_are_the_script_s(
    same_as_python: Any,
) -> None:
    same_as_python(
        "".join(f"import {name}\nprint({name}.__file__)\n" for name in SHADOWS),
        files={f"{name}.py": f"print('own', {name!r})\n" for name in SHADOWS},
    )


def test_modules_named_like_the_standard_library_are_not_run_by_the_profiler(
    same_as_python: Any,
) -> None:
    same_as_python(
        "import time\ntime.sleep(0.5)\nprint('imports nothing')\n",  # long enough for snapshots
        files={f"{name}.py": f"print('own', {name!r})\n" for name in [*SHADOWS, "numpy", "rich"]},
    )


def test_pickle_of_a_function_of_the_main_module(same_as_python: Any) -> None:
    same_as_python(
        "import pickle\n"
        "def f(): return 5\n"
        "class Point: pass\n"
        "print(pickle.dumps(f), pickle.loads(pickle.dumps(f))(), pickle.dumps(Point()))\n",
    )
