import importlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from deepcontext.profiler.import_hook import ImportHook

MODULE = "module_that_is_waited_for"


@pytest.fixture(autouse=True)
def clean_import_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(tmp_path))
    before = list(sys.meta_path)
    yield
    sys.modules.pop(MODULE, None)
    assert sys.meta_path == before, "the hook was left behind"


def write(folder: Path, text: str) -> None:
    (folder / f"{MODULE}.py").write_text(text)
    importlib.invalidate_caches()


def test_tells_after_the_module_was_loaded_completely(tmp_path: Path) -> None:
    write(tmp_path, "import sys\nready = False\nready = True\n")
    seen: list[bool] = []
    ImportHook(MODULE, lambda: seen.append(sys.modules[MODULE].ready), pytest.fail).install()
    importlib.import_module(MODULE)
    assert seen == [True]


def test_tells_at_once_when_the_module_is_there_already(tmp_path: Path) -> None:
    write(tmp_path, "")
    importlib.import_module(MODULE)
    seen: list[int] = []
    ImportHook(MODULE, lambda: seen.append(1), pytest.fail).install()
    assert seen == [1]


def test_spec_and_loader_are_the_genuine_ones(tmp_path: Path) -> None:
    write(tmp_path, "loader_while_loading = __spec__.loader\n")
    ImportHook(MODULE, lambda: None, pytest.fail).install()
    module = importlib.import_module(MODULE)
    assert module.__spec__ is not None
    assert type(module.__spec__.loader).__name__ == "SourceFileLoader"
    assert vars(module.__spec__.loader).keys() == {"name", "path"}
    assert module.__spec__.loader is module.loader_while_loading


def test_several_may_wait_for_one_module(tmp_path: Path) -> None:
    write(tmp_path, "import pathlib\nif not pathlib.Path(__file__ + 'x').exists(): raise OSError\n")
    seen: list[int] = []
    hooks = [
        ImportHook(MODULE, lambda number=number: seen.append(number), pytest.fail)  # type: ignore[misc]
        for number in range(3)
    ]
    for hook in hooks:
        hook.install()
    with pytest.raises(OSError, match=r"^$"):
        importlib.import_module(MODULE)
    (tmp_path / f"{MODULE}.pyx").touch()
    module = importlib.import_module(MODULE)
    assert sorted(seen) == [0, 1, 2]
    assert vars(module.__spec__.loader).keys() == {"name", "path"}  # type: ignore[union-attr]


def test_waits_on_after_an_import_that_failed(tmp_path: Path) -> None:
    write(tmp_path, "raise RuntimeError('not today')\n")
    seen: list[int] = []
    hook = ImportHook(MODULE, lambda: seen.append(1), pytest.fail)
    hook.install()
    with pytest.raises(RuntimeError, match="not today"):
        importlib.import_module(MODULE)
    assert seen == []
    write(tmp_path, "fixed = True\n")
    importlib.import_module(MODULE)
    assert seen == [1]


def test_a_missing_module_is_missing_as_without_the_hook() -> None:
    hook = ImportHook(MODULE, lambda: None, pytest.fail)
    hook.install()
    with pytest.raises(ModuleNotFoundError, match=MODULE):
        importlib.import_module(MODULE)
    hook.cancel()


def test_cancelled_hook_tells_nothing(tmp_path: Path) -> None:
    write(tmp_path, "")
    seen: list[int] = []
    hook = ImportHook(MODULE, lambda: seen.append(1), pytest.fail)
    hook.install()
    hook.cancel()
    importlib.import_module(MODULE)
    assert seen == []


def test_tells_on_the_importing_thread(tmp_path: Path) -> None:
    write(tmp_path, "")
    seen: list[int] = []
    ImportHook(MODULE, lambda: seen.append(threading.get_ident()), pytest.fail).install()
    thread = threading.Thread(target=lambda: importlib.import_module(MODULE))
    thread.start()
    thread.join()
    assert seen == [thread.ident]


def test_other_threads_may_import_the_module_while_it_is_told(tmp_path: Path) -> None:
    """What is called back may wait for such a thread."""
    write(tmp_path, "")
    seen: list[str] = []

    def tell() -> None:
        thread = threading.Thread(
            target=lambda: seen.append(importlib.import_module(MODULE).__name__)
        )
        thread.start()
        thread.join(20)

    ImportHook(MODULE, tell, pytest.fail).install()
    importlib.import_module(MODULE)
    assert seen == [MODULE]


def test_waits_for_an_import_that_another_thread_has_begun(tmp_path: Path) -> None:
    write(tmp_path, "import threading\nbegun.set()\ngo_on.wait(20)\nready = True\n")
    begun, go_on = threading.Event(), threading.Event()
    builtins_of_module = {"begun": begun, "go_on": go_on}
    vars(importlib.import_module("builtins")).update(builtins_of_module)
    thread = threading.Thread(target=importlib.import_module, args=(MODULE,))
    thread.start()
    begun.wait(20)
    seen: list[bool] = []
    hook = ImportHook(MODULE, lambda: seen.append(sys.modules[MODULE].ready), pytest.fail)
    threading.Timer(0.2, go_on.set).start()
    try:
        hook.install()
    finally:
        thread.join()
        for name in builtins_of_module:
            del vars(importlib.import_module("builtins"))[name]
    assert seen == [True]


@pytest.mark.parametrize("is_loaded", [False, True])
def test_a_failure_of_ours_does_not_reach_the_program(tmp_path: Path, *, is_loaded: bool) -> None:
    write(tmp_path, "")
    if is_loaded:
        importlib.import_module(MODULE)
    failures: list[str] = []

    def fail() -> None:
        raise TypeError("an odd version")

    ImportHook(MODULE, fail, failures.append).install()
    assert importlib.import_module(MODULE).__name__ == MODULE
    assert failures == ["TypeError: an odd version"]
