"""A real profile, the real server, a real browser without a network.

Needs playwright and Debian's chromium: `tools/setup_browser.sh` installs both. Without them these
tests are skipped, or fail where DEEPCONTEXT_REQUIRE_BROWSER is set, as in CI.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import pytest

from deepcontext.profiler.model.profile import Profile
from deepcontext.ui.web.open_profiles import OpenProfile, OpenProfiles
from tests.ui.engine import answers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from playwright.sync_api import Browser, Page

    Pages = Callable[..., "Opened"]

SIZE = {"width": 1280, "height": 800}
# Where a page has its data from.
WHERE = (SERVER, FILE) = ("server", "file")
ROOT = Path(__file__).parents[3]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
UNTIL_S = 60
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    lacking = _lacking()
    for item in items:
        if here not in item.path.parents:
            continue
        item.add_marker(pytest.mark.browser)
        if lacking and not os.environ.get("DEEPCONTEXT_REQUIRE_BROWSER"):
            item.add_marker(pytest.mark.skip(reason=f"{lacking}: run tools/setup_browser.sh"))


def _lacking() -> str:
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed"
    return "" if CHROMIUM else "chromium is not installed"


@dataclass(frozen=True)
class Opened:
    """A page on a profile.

    Attributes:
        page: the page.
        profile: what it shows, read through the Python API.
        address: the address of the page.
        errors: the errors on the page's console, and what it asked of others.
        profiles: all profiles of the page.
    """

    page: Page
    profile: Profile
    address: str
    errors: list[str]
    profiles: OpenProfiles

    def go(self, place: str = "view=flame") -> None:
        """Load the page at a place such as ``view=table``."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}#{place}")
        self.page.wait_for_selector("main")

    def text(self, selector: str) -> str:
        return self.page.inner_text(selector)

    def status(self, contains: str) -> None:
        """Wait until the line below the graph contains a text."""
        self.page.wait_for_selector(f".status:has-text('{contains}')", timeout=60_000)

    def until(self, condition: str) -> None:
        """Wait until an expression of JavaScript holds, however long a busy machine takes.

        Not `wait_for_function`, which makes code of the string again and again: the page's security
        policy forbids this.
        """
        deadline = time.monotonic() + UNTIL_S
        while not self.page.evaluate(condition):
            assert time.monotonic() < deadline, condition
            self.page.wait_for_timeout(20)

    def ask(self, question: str) -> Any:
        """Return the engine's answer to a question such as ``flame?lines=1``."""
        what, _, query = question.partition("?")
        return answers(self.profiles, [(what, dict(parse_qsl(query)))])[0]

    def question(self) -> str:
        """Return the question about the tree that is shown, as far as edits decide it."""
        asked = "new URLSearchParams(location.hash.slice(1)).get('edits') ?? ''"
        edits = [each.rsplit(":", 1)[0] for each in self.page.evaluate(asked).split(",")]
        return f"flame?edits={','.join(edits)}"

    def func(self) -> int:
        """Return the frame that the sandwich shows."""
        return int(self.page.evaluate("new URLSearchParams(location.hash.slice(1)).get('func')"))

    def box(self, name: str, question: str = "flame") -> tuple[float, float]:
        """Return the position of the widest box of a name, without zoom."""
        answer = self.ask(question)
        nodes, names = answer["nodes"], answer["functions"]["name"]
        left: list[int] = []
        following: list[int] = []
        path: list[int] = []
        for node, depth in enumerate(nodes["depth"]):
            del path[depth:]
            start = following[path[-1]] if path else 0
            if path:
                following[path[-1]] += nodes["value"][node]
            left.append(start)
            following.append(start)
            path.append(node)
        wanted = [n for n, f in enumerate(nodes["function"]) if names[f] == name]
        node = max(wanted, key=lambda each: nodes["value"][each])
        bounds = self.page.locator("canvas").first.bounding_box()
        assert bounds is not None
        middle = (left[node] + nodes["value"][node] / 2) / nodes["value"][0]
        return bounds["x"] + middle * bounds["width"], bounds["y"] + 20 * nodes["depth"][node] + 10


@pytest.fixture(scope="session")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return profiles of two runs of an example, of different length."""
    folder = tmp_path_factory.mktemp("profiles")
    made = []
    for name, steps in (("short", "3"), ("long", "9")):
        path = folder / f"{name}.dcprof"
        command = ["-m", "deepcontext", "profile", "-q", "-o", str(path), "examples/torch_mlp.py"]
        subprocess.run(
            [sys.executable, *command, "--steps", steps], cwd=ROOT, check=True, timeout=300
        )
        made.append(path)
    return made[0], made[1]


# Closed after each file: an open one keeps an event loop running in this
# thread, in which no test could call `asyncio.run`.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert not _lacking(), _lacking()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        launched = play.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        launched.close()


@contextlib.contextmanager
def serving(*paths: Path, options: Sequence[str] = ()) -> Iterator[str]:
    """Run `deepcontext view` as a user does, and yield the address it prints."""
    command = [sys.executable, "-m", "deepcontext", "view", "--no-browser"]
    command += [*options, *map(str, paths)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        try:
            yield address
        finally:
            server.terminate()


@pytest.fixture(scope="session")
def address(profiles: tuple[Path, Path]) -> Iterator[str]:
    with serving(*profiles) as where:
        yield where


@contextlib.contextmanager
def open_page(browser: Browser, address: str, *profiles: Any, **settings: Any) -> Iterator[Opened]:
    """Open a page that can reach only its own server; it shows the first profile."""
    settings = {"viewport": SIZE, **settings}
    context = browser.new_context(**settings)
    own = address.partition("#")[0].rsplit("/", 2)[0] if address.startswith("http") else "file://"
    errors: list[str] = []

    def only_own(route: Any) -> None:
        url = route.request.url
        if url.startswith((own, "data:", "blob:", "about:")):
            route.continue_()
        else:
            errors.append(f"asked for {url}")
            route.abort()

    context.route("**/*", only_own)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "console",
        lambda each: errors.append(each.text) if each.type in {"error", "warning"} else None,
    )
    try:
        known = OpenProfiles([OpenProfile.of_memory(each, "profile") for each in profiles if each])
        yield Opened(page, profiles[0], address, errors, known)
        assert errors == []
    finally:
        context.close()


@pytest.fixture(scope="session")
def one_file(profiles: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write the page of the profiles into one file, and return its address."""
    target = tmp_path_factory.mktemp("page") / "page.html"
    command = [sys.executable, "-m", "deepcontext", "view", "--html", str(target)]
    subprocess.run([*command, *map(str, profiles)], cwd=ROOT, check=True, timeout=300)
    return target.as_uri()


@pytest.fixture(scope="module")
def pages(browser: Browser) -> Iterator[Pages]:
    """Return a function that opens a page once for a module: loading it again takes half the time."""
    opened: dict[str, Opened] = {}
    with contextlib.ExitStack() as stack:

        def page_at(address: str, *profiles: Profile) -> Opened:
            if address not in opened:
                opened[address] = stack.enter_context(open_page(browser, address, *profiles))
            return opened[address]

        yield page_at


def used_anew(opened: Opened, place: str, shown: str) -> Iterator[Opened]:
    """Load a shared page as for somebody who has never seen it, and check what the test has left."""
    page = opened.page
    page.set_viewport_size(SIZE)  # type: ignore[arg-type]
    page.emulate_media(media="screen", color_scheme="light")
    page.context.clear_permissions()
    page.mouse.move(0, 0)
    opened.go(place)
    page.wait_for_selector(shown)
    yield opened
    page.evaluate("localStorage.clear()")
    errors = list(opened.errors)
    opened.errors.clear()
    assert errors == []


@pytest.fixture
def opened(
    request: pytest.FixtureRequest,
    pages: Pages,
    address: str,
    one_file: str,
    profiles: tuple[Path, Path],
) -> Iterator[Opened]:
    """Open the page of the first profile; the test fails if the console has errors.

    The server's page, or that of a file where a test is parametrised with `WHERE`, indirectly: both have one
    engine and one page, so that a test or two of each view show that both have the data.
    """
    where = one_file if getattr(request, "param", SERVER) == FILE else address
    yield from used_anew(pages(where, *map(Profile.load, profiles)), "view=flame", "canvas")


@pytest.fixture
def open_on(browser: Browser) -> Callable[..., Any]:
    """Return `open_page` for the browser of this session."""
    return functools.partial(open_page, browser)
