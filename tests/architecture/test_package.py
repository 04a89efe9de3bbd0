import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import deepcontext
from deepcontext import collectors
from deepcontext.profiler.format.status import Outcome
from deepcontext.profiler.recording.collector import Availability
from deepcontext.profiler.recording.options import SessionOptions

ROOT = Path(__file__).resolve().parents[2]


def test_public_surface_is_what_all_says() -> None:
    public = {
        name
        for name, value in vars(deepcontext).items()
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        and getattr(value, "__module__", "").startswith("deepcontext")
        and name not in {"SessionManager", "load_ipython_extension"}
    }
    loaded_when_asked_for = {"Profile", "Session", "__version__", "profile", "start"}
    assert public | loaded_when_asked_for | {"errors"} == set(deepcontext.__all__)
    assert all(hasattr(deepcontext, name) for name in deepcontext.__all__)


def test_completion_offers_what_a_program_calls() -> None:
    assert {"start", "profile", "stop", "scope", "step", "errors"} <= set(dir(deepcontext))


def test_unknown_attribute_is_an_attribute_error() -> None:
    assert not hasattr(deepcontext, "no_such_thing")


def test_version_is_that_of_the_project_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["version"] == deepcontext.__version__


def test_collectors_have_distinct_names_and_say_whether_they_can_run() -> None:
    made = [make() for make in collectors.ALL]
    assert len({collector.name for collector in made}) == len(made)
    for collector in made:
        answer = collector.probe()
        assert isinstance(answer, Availability)
        assert answer.available or answer.reason, f"{collector.name} does not say why not"


def test_a_collector_leaves_nothing_behind() -> None:
    before = list(sys.meta_path)
    for make in collectors.ALL:
        collector = make()
        if collector.probe().available:
            collector.start(SessionOptions(cpu_rate=0))  # samples need a session
            collector.stop()
        assert isinstance(collector.outcome(), Outcome)
    assert sys.meta_path == before


def test_no_file_names_a_machine_or_a_registry() -> None:
    forbidden = ("/" + "root/", "/" + "work/", "pypi" + ".org", "registry." + "npmjs")
    texts = [
        path
        for suffix in ("*.py", "*.md", "*.toml", "*.cpp", "*.h", "*.txt", "*.sh")
        for path in ROOT.rglob(suffix)
        if not {"build", ".venv", "node_modules", ".git"} & set(path.relative_to(ROOT).parts)
    ]
    assert texts
    found = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in texts
        for word in forbidden
        if word in path.read_text(encoding="utf-8", errors="replace")
    ]
    assert not found


def test_beside_the_program_no_clock_is_read_that_it_can_replace() -> None:
    read = re.compile(r"\btime\.(time|monotonic|perf_counter|process_time|thread_time)(_ns)?\(")
    own_process = {"peak_program.py", "sitecustomize.py"}  # or before the program's first line
    package = ROOT / "src" / "deepcontext"
    files = [
        *(package / "collectors").rglob("*.py"),
        *(package / "profiler/recording").rglob("*.py"),
    ]
    assert len(files) > 50
    assert not [
        path for path in files if path.name not in own_process and read.search(path.read_text())
    ]
