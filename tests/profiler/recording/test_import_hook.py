import builtins
import importlib
import importlib.util
import os
import sys
import threading
import traceback
import types
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import pytest

from deepcontext import _native
from deepcontext.profiler.recording import operations
from deepcontext.profiler.recording.import_hook import ImportHook

MODULE = "module_that_is_waited_for"


@pytest.fixture(autouse=True)
def clean_import_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield
    for name in (MODULE, f"{MODULE}_part", f"{MODULE}_other"):
        sys.modules.pop(name, None)
    assert not any(isinstance(finder, ImportHook) for finder in sys.meta_path)


def write(folder: Path, text: str) -> None:
    (folder / f"{MODULE}.py").write_text(text)
    importlib.invalidate_caches()


def test_calls_back_after_the_module_was_loaded_completely(tmp_path: Path) -> None:
    write(tmp_path, "import sys\nready = False\nready = True\n")
    seen: list[bool] = []
    ImportHook(MODULE, lambda: seen.append(sys.modules[MODULE].ready), pytest.fail).install()
    importlib.import_module(MODULE)
    assert seen == [True]


def test_calls_back_for_a_module_inside_a_package(tmp_path: Path) -> None:
    package = tmp_path / MODULE
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "inner.py").write_text("ready = True\n", encoding="utf-8")
    importlib.invalidate_caches()
    inner = f"{MODULE}.inner"
    seen: list[bool] = []
    ImportHook(inner, lambda: seen.append(sys.modules[inner].ready), pytest.fail).install()
    importlib.import_module(MODULE)
    assert seen == []
    importlib.import_module(inner)
    del sys.modules[inner]
    assert seen == [True]


def test_calls_back_at_once_when_the_module_is_already_loaded(tmp_path: Path) -> None:
    write(tmp_path, "")
    importlib.import_module(MODULE)
    seen: list[int] = []
    ImportHook(MODULE, lambda: seen.append(1), pytest.fail).install()
    assert seen == [1]


def test_spec_and_loader_are_the_original_ones(tmp_path: Path) -> None:
    write(tmp_path, "loader_while_loading = __spec__.loader\n")
    ImportHook(MODULE, lambda: None, pytest.fail).install()
    module = importlib.import_module(MODULE)
    assert module.__spec__ is not None
    assert type(module.__spec__.loader).__name__ == "SourceFileLoader"
    assert vars(module.__spec__.loader).keys() == {"name", "path"}
    assert module.__spec__.loader is module.loader_while_loading


def test_several_hooks_may_wait_for_one_module(tmp_path: Path) -> None:
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


def test_keeps_waiting_after_an_import_that_failed(tmp_path: Path) -> None:
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


def test_a_missing_module_fails_as_without_the_hook() -> None:
    hook = ImportHook(MODULE, lambda: None, pytest.fail)
    hook.install()
    with pytest.raises(ModuleNotFoundError, match=MODULE):
        importlib.import_module(MODULE)
    hook.cancel()


def test_a_cancelled_hook_does_not_call_back(tmp_path: Path) -> None:
    write(tmp_path, "")
    seen: list[int] = []
    hook = ImportHook(MODULE, lambda: seen.append(1), pytest.fail)
    hook.install()
    hook.cancel()
    importlib.import_module(MODULE)
    assert seen == []


def test_calls_back_while_the_importing_thread_waits(tmp_path: Path) -> None:
    write(tmp_path, "")
    seen: list[bool] = []

    def attach() -> None:
        seen.append(_native.waits_for_operation(thread.ident or 0))

    ImportHook(MODULE, attach, pytest.fail).install()
    thread = threading.Thread(target=lambda: importlib.import_module(MODULE))
    thread.start()
    thread.join()
    assert seen == [True]


def test_other_threads_may_import_the_module_during_the_callback(tmp_path: Path) -> None:
    """The callback may wait for such a thread."""
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
def test_a_failing_callback_does_not_reach_the_program(tmp_path: Path, *, is_loaded: bool) -> None:
    write(tmp_path, "")
    if is_loaded:
        importlib.import_module(MODULE)
    failures: list[str] = []

    def fail() -> None:
        raise TypeError("an odd version")

    ImportHook(MODULE, fail, failures.append).install()
    assert importlib.import_module(MODULE).__name__ == MODULE
    assert failures == ["TypeError: an odd version"]


def test_asking_for_the_spec_keeps_the_hook(tmp_path: Path) -> None:
    """transformers and vLLM do so before they import torch."""
    write(tmp_path, "")
    seen: list[int] = []
    ImportHook(MODULE, lambda: seen.append(1), pytest.fail).install()
    specs = [importlib.util.find_spec(MODULE) for _ in range(3)]
    assert specs[0] == specs[1] == specs[2]
    assert seen == []
    importlib.import_module(MODULE)
    assert seen == [1]


def test_a_module_loaded_by_hand_from_an_early_spec(tmp_path: Path) -> None:
    write(tmp_path, "ready = True\n")
    seen: list[bool] = []
    ImportHook(MODULE, lambda: seen.append(sys.modules[MODULE].ready), pytest.fail).install()
    spec = importlib.util.find_spec(MODULE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    spec.loader.exec_module(module)
    assert seen == [True]
    assert vars(spec.loader).keys() == {"name", "path"}


def test_a_spec_that_is_loaded_again_after_a_failure(tmp_path: Path) -> None:
    write(tmp_path, "import pathlib\nif not pathlib.Path(__file__ + 'x').exists(): raise OSError\n")
    seen: list[int] = []
    hooks = [
        ImportHook(MODULE, lambda number=number: seen.append(number), pytest.fail)  # type: ignore[misc]
        for number in range(2)
    ]
    for hook in hooks:
        hook.install()
    spec = importlib.util.find_spec(MODULE)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[MODULE] = module = importlib.util.module_from_spec(spec)
    with pytest.raises(OSError, match=r"^$"):
        spec.loader.exec_module(module)
    (tmp_path / f"{MODULE}.pyx").touch()
    spec.loader.exec_module(module)
    assert sorted(seen) == [0, 1]
    assert vars(spec.loader).keys() == {"name", "path"}


@pytest.mark.parametrize("is_made_first", [False, True])
def test_a_lazy_module_calls_back_when_it_is_used(tmp_path: Path, *, is_made_first: bool) -> None:
    """The callback may use the module on another thread, which waits for LazyLoader's lock."""
    write(tmp_path, "ready = True\n")
    seen: list[bool] = []

    def tell() -> None:
        thread = threading.Thread(target=lambda: seen.append(sys.modules[MODULE].ready))
        thread.start()
        thread.join(20)

    hook = ImportHook(MODULE, tell, pytest.fail)
    if not is_made_first:
        hook.install()
    spec = importlib.util.find_spec(MODULE)
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    sys.modules[MODULE] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if is_made_first:
        hook.install()
    hook.notice()
    assert seen == []
    assert module.ready
    assert seen == [True]
    assert not hook.is_late


def test_an_unused_lazy_module_is_not_reported_as_missed(tmp_path: Path) -> None:
    write(tmp_path, "raise AssertionError('loaded')\n")
    hook = ImportHook(MODULE, lambda: None, pytest.fail)
    hook.install()
    spec = importlib.util.find_spec(MODULE)
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    sys.modules[MODULE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[MODULE])
    hook.cancel()
    assert not hook.has_missed


class PostImportHooks:
    """Finds modules through all other finders and wraps their loaders, as wrapt and others do."""

    def __init__(self, told: list[str], *, sets_attribute: bool) -> None:
        self.told = told
        self.sets_attribute = sets_attribute
        self.is_asking = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if self.is_asking or name != MODULE:
            return None
        self.is_asking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.is_asking = False
        if spec is not None:
            spec.loader = _ChainedLoader(spec.loader, self)  # type: ignore[assignment]
        return spec


class _ChainedLoader:
    def __init__(self, loader: Any, hooks: PostImportHooks) -> None:
        self.loader = loader
        self.hooks = hooks
        if hooks.sets_attribute:
            self.exec_module = self._load

    def _load(self, module: Any) -> None:
        self.loader.exec_module(module)
        self.hooks.told.append(module.__name__)

    def __getattr__(self, name: str) -> Any:
        return self._load if name == "exec_module" else getattr(self.loader, name)


@pytest.mark.parametrize("sets_attribute", [False, True])
@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 0), (1, 0, 1), (1, 0, 0, 1)])
def test_hooks_of_others_that_wrap_loaders_still_work(
    tmp_path: Path, order: tuple[int, ...], *, sets_attribute: bool
) -> None:
    write(tmp_path, "")
    seen: list[int] = []
    told: list[str] = []
    for place, is_theirs in enumerate(order):
        if is_theirs:
            sys.meta_path.insert(0, PostImportHooks(told, sets_attribute=sets_attribute))  # type: ignore[arg-type]
        else:
            ImportHook(MODULE, lambda place=place: seen.append(place), pytest.fail).install()  # type: ignore[misc]
    importlib.util.find_spec(MODULE)
    importlib.import_module(MODULE)
    assert len(told) == sum(order)
    assert sorted(seen) == [place for place, is_theirs in enumerate(order) if not is_theirs]


class OneLoader:
    """A finder that is the loader of all modules it knows, as zipimport's is."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return importlib.util.spec_from_loader(name, self) if name in self.names else None  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        module.is_loaded = True
        if module.__name__ == MODULE:
            importlib.import_module(f"{MODULE}_part")


def test_a_loader_of_many_modules_loads_the_right_one() -> None:
    finder = OneLoader(MODULE, f"{MODULE}_part", f"{MODULE}_other")
    sys.meta_path.insert(0, finder)
    seen: list[bool] = []
    ImportHook(MODULE, lambda: seen.append(sys.modules[MODULE].is_loaded), pytest.fail).install()
    importlib.util.find_spec(MODULE)
    importlib.import_module(f"{MODULE}_other")
    assert seen == []
    importlib.import_module(MODULE)
    assert seen == [True]
    assert vars(finder).keys() == {"names"}


class ClassLoader:
    """A class that is its own loader, as the finder of built-in modules is."""

    __slots__ = ()

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> Any:
        return importlib.util.spec_from_loader(name, cls) if name == MODULE else None  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: Any) -> None:
        return None

    @staticmethod
    def exec_module(module: Any) -> None:
        module.is_loaded = True


class SlotLoader(ClassLoader):
    __slots__ = ()  # the base has no `__dict__` either

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> Any:
        return importlib.util.spec_from_loader(name, cls()) if name == MODULE else None  # type: ignore[arg-type]


@pytest.mark.parametrize("finder", [ClassLoader, SlotLoader])
def test_a_load_that_cannot_be_watched_is_noticed_later(finder: Any) -> None:
    sys.meta_path.insert(0, finder)
    seen: list[int] = []
    hook = ImportHook(MODULE, lambda: seen.append(1), pytest.fail)
    hook.install()
    hook.notice()
    assert importlib.import_module(MODULE).is_loaded
    hook.notice()
    hook.notice()
    assert seen == [1]
    assert hook.is_late
    assert not hook.has_missed


def test_a_program_that_replaces_the_list_of_finders(tmp_path: Path) -> None:
    write(tmp_path, "")
    seen: list[int] = []
    original = list(sys.meta_path)
    hook = ImportHook(MODULE, lambda: seen.append(1), pytest.fail)
    hook.install()
    sys.meta_path = original
    importlib.import_module(MODULE)
    hook.cancel()
    assert seen == []
    assert hook.has_missed


def test_a_module_that_the_program_adds_to_sys_modules() -> None:
    seen: list[int] = []
    hook = ImportHook(MODULE, lambda: seen.append(1), pytest.fail)
    hook.install()
    sys.modules[MODULE] = types.ModuleType(MODULE)
    hook.notice()
    assert seen == [1]
    assert hook.is_late


def test_an_import_that_is_under_way_is_neither_late_nor_missed(tmp_path: Path) -> None:
    write(tmp_path, "import builtins\nbuiltins.look()\n")
    seen: list[int] = []
    hook = ImportHook(MODULE, lambda: seen.append(1), pytest.fail)
    hook.install()
    found: list[Any] = []

    def look() -> None:
        hook.notice()
        found.append(importlib.util.find_spec(MODULE))
        found.append(list(seen))

    vars(builtins)["look"] = look
    try:
        module = importlib.import_module(MODULE)
    finally:
        del vars(builtins)["look"]
    assert found == [module.__spec__, []]
    assert seen == [1]
    assert not hook.is_late


def test_a_reload_calls_back_if_the_first_load_did_not(tmp_path: Path) -> None:
    write(tmp_path, "")
    seen: list[int] = []
    hook = ImportHook(MODULE, lambda: seen.append(1), pytest.fail)
    hook.install()
    sys.meta_path.remove(hook)  # type: ignore[arg-type]
    module = importlib.import_module(MODULE)
    sys.meta_path.insert(0, hook)  # type: ignore[arg-type]
    importlib.reload(module)
    importlib.reload(module)
    assert seen == [1]


def _failure(source: str) -> str:
    """Return the traceback of an import, as the interpreter prints it."""
    try:
        exec(source, {"__name__": "program"})
    except Exception:  # noqa: BLE001
        return traceback.format_exc().replace(source, "")
    return ""


@pytest.mark.parametrize("fault", ["1 / 0", "import missing_altogether", "def"])
def test_the_traceback_of_a_failed_import_is_the_same(tmp_path: Path, fault: str) -> None:
    write(tmp_path, f"\n{fault}\n")
    source = f"import {MODULE}"
    plain = _failure(source)
    hooks = [ImportHook(MODULE, lambda: None, pytest.fail) for _ in range(2)]
    for hook in hooks:
        hook.install()
    assert _failure(source) == plain != ""
    for hook in hooks:
        hook.cancel()


def test_finders_that_the_program_removed_are_not_asked(tmp_path: Path) -> None:
    write(tmp_path, "")
    hook = ImportHook(MODULE, lambda: None, pytest.fail)
    hook.install()
    sys.meta_path.remove(PathFinder)  # type: ignore[arg-type]
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(MODULE)
    hook.cancel()


def test_a_forked_child_does_not_call_back(tmp_path: Path) -> None:
    write(tmp_path, "")
    told = tmp_path / "told"
    hook = ImportHook(MODULE, told.touch, pytest.fail)
    hook.install()
    child = os.fork()
    if child == 0:
        importlib.import_module(MODULE)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert not told.exists()
    hook.cancel()


def test_threads_that_ask_and_import_at_the_same_time(tmp_path: Path) -> None:
    write(tmp_path, "import time\ntime.sleep(0.05)\nready = True\n")
    seen: list[bool] = []
    hooks = [
        ImportHook(MODULE, lambda: seen.append(sys.modules[MODULE].ready), pytest.fail)
        for _ in range(2)
    ]
    for hook in hooks:
        hook.install()
    start = threading.Barrier(8)
    failures: list[Exception] = []

    def work(number: int) -> None:
        start.wait()
        try:
            for _ in range(20):
                if number % 2:
                    importlib.util.find_spec(MODULE)
            assert importlib.import_module(MODULE).ready
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert seen == [True, True]


def test_cancelling_waits_for_a_callback_on_another_thread(tmp_path: Path) -> None:
    write(tmp_path, "")
    begun, go_on = threading.Event(), threading.Event()
    seen: list[str] = []

    def tell() -> None:
        begun.set()
        go_on.wait(20)
        seen.append("told")

    hook = ImportHook(MODULE, tell, pytest.fail)
    hook.install()
    thread = threading.Thread(target=lambda: importlib.import_module(MODULE))
    thread.start()
    begun.wait(20)
    threading.Timer(0.1, go_on.set).start()
    operations.run(hook.cancel)
    seen.append("cancelled")
    thread.join()
    assert seen == ["told", "cancelled"]
    assert not hook.has_missed
