"""The one-file page: what it holds, and what it must not; `test_engine.py` asks its questions."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import hashlib
import html
import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from deepcontext.profiler.format import source_text
from deepcontext.profiler.format.source_text import FileText
from deepcontext.profiler.model.job.fold import merge
from deepcontext.profiler.model.profile import Profile
from deepcontext.ui.web.app import ViewSettings, create_app
from deepcontext.ui.web.one_file import make_page
from deepcontext.ui.web.open_profiles import OpenProfile, OpenProfiles
from deepcontext.ui.web.source_choice import IN_PART
from deepcontext.ui.web.static_files import STATIC
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from pathlib import Path

    from deepcontext.ui.web.one_file import Page


def parts(page: Page) -> list[bytes]:
    """Return the answer to `about`, then the container of each profile."""
    packed = re.search(r'id="deepcontext-data">([^<]*)<', page.text)
    assert packed is not None
    return [gzip.decompress(base64.b64decode(each)) for each in packed[1].split("\n")]


def header(page: Page, file: int = 0) -> dict[str, Any]:
    """Return what the page holds of a profile besides columns."""
    content = parts(page)[file + 1]
    size = int.from_bytes(content[:4], "little")
    described: dict[str, Any] = json.loads(content[4 : 4 + size])
    found: dict[str, Any] = described["header"]
    return found


@pytest.fixture
def profiles(training_folder: Path) -> OpenProfiles:
    return OpenProfiles.open([
        training_folder / "train.dcprof",
        training_folder / "troubled.dcprof",
    ])


def test_answers_that_are_not_computed_are_those_of_the_server(profiles: OpenProfiles) -> None:
    client = create_app(profiles, ViewSettings("t")).test_client()
    page = make_page(profiles)
    assert json.loads(parts(page)[0]) == client.get("/t/api/about").get_json()
    for file in (0, 1):
        found = header(page, file)
        assert found["findings"] == client.get(f"/t/api/findings?file={file}").get_json()
        for name, content in found["section"].items():
            assert content == client.get(f"/t/api/section?file={file}&name={name}").get_json()


def test_the_page_has_the_source_of_the_program(profiles: OpenProfiles) -> None:
    files = header(make_page(profiles))["text"]
    assert any("torch.nn.functional.mse_loss" in str(each["parts"]) for each in files.values())


def test_the_page_grows_with_the_profile_and_not_with_its_switches() -> None:
    large = random_profile(20_000, depth=20)
    small = random_profile(200, depth=20)
    size = [
        make_page(OpenProfiles([OpenProfile.of_memory(each, "one")])).size_bytes
        for each in (small, large)
    ]
    assert size[1] - size[0] < 1.5 * len(large.to_bytes())


def test_without_source_no_source_text_is_in_the_page(training_folder: Path) -> None:
    profiles = OpenProfiles.open([training_folder / "train.dcprof"], source_text=False)
    page = make_page(profiles)
    found = header(page)
    assert any("--no-source" in notice for notice in page.notices)
    assert "mse_loss(net(inputs)" not in json.dumps(found)
    files = found["text"].values()
    assert files
    assert all(each["parts"] == [] and "--no-source" in each["note"] for each in files)


def with_text(folder: Path) -> Profile:
    """Return the profile of train.py with text of its line 7, and delete the file."""
    script = folder / "train.py"
    lines = script.read_text(encoding="utf-8").splitlines()
    script.unlink()
    held = {str(script): FileText(len(lines), {7: lines[6]})}
    profile = Profile.load(folder / "train.dcprof")
    return profile.with_section(source_text.SECTION, source_text.encode(held))


@pytest.mark.parametrize("is_wanted", [True, False])
def test_text_that_the_profile_holds_is_source_text(
    training_folder: Path, *, is_wanted: bool
) -> None:
    opened = OpenProfile.of_memory(with_text(training_folder), "train")
    found = header(make_page(OpenProfiles([opened], source_text=is_wanted)))
    assert ("mse_loss(net(inputs)" in json.dumps(found)) is is_wanted
    assert source_text.SECTION not in found["section"]
    if is_wanted:
        (text,) = (each for path, each in found["text"].items() if path.endswith("train.py"))
        assert [(part["first"], len(part["lines"])) for part in text["parts"]] == [(7, 1)]
        assert "which holds it: the file cannot be read on this machine" in text["note"]
        assert IN_PART not in text["note"]


def test_the_same_profile_gives_the_same_page(training_folder: Path) -> None:
    path = training_folder / "train.dcprof"
    assert make_page(OpenProfiles.open([path])).text == make_page(OpenProfiles.open([path])).text


def test_the_page_requests_nothing_from_outside(profiles: OpenProfiles) -> None:
    text = make_page(profiles).text
    assert not re.findall(r'(?:src|href)="(?!data:)[^"]*"', text)
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text


SCRIPTS: Final = ("app.js", "engine.js", "jobs.js", "roofline.js", "timeline.js")
# The time line came with a limit of its own, besides that of all other scripts together, in bytes.
TIME_LINE: Final = "timeline.js"
MOST_OF_TIME_LINE: Final = 40_000
MOST_BYTES: Final = 190_000
MOST_COMPRESSED: Final = 62_000


def test_the_bundle_is_small_and_of_this_page_only() -> None:
    names = {path.name for path in STATIC.iterdir()}
    assert names == {"index.html", *SCRIPTS, "app.css", "icon.svg"}
    texts = {name: (STATIC / name).read_text("utf-8") for name in SCRIPTS}
    assert len(texts[TIME_LINE].encode()) <= MOST_OF_TIME_LINE
    others = "".join(text for name, text in texts.items() if name != TIME_LINE).encode()
    assert len(others) <= MOST_BYTES
    assert len(gzip.compress(others, mtime=0)) <= MOST_COMPRESSED
    script = "".join(texts.values())
    assert not re.findall(r"https?://(?!www\.w3\.org)", script)
    assert "eval(" not in script


def test_only_a_page_with_ranks_or_processes_has_the_script_for_them(training_folder: Path) -> None:
    script = (STATIC / "jobs.js").read_text("utf-8")
    profile = Profile.load(training_folder / "train.dcprof")
    ranks = {
        str(rank): dataclasses.replace(
            profile, run=dataclasses.replace(profile.run, rank=rank, ranks=2, pid=rank + 1)
        )
        for rank in range(2)
    }
    single, merged = (
        make_page(OpenProfiles([OpenProfile.of_memory(each, "one")]))
        for each in (profile, merge(ranks))
    )
    assert script not in single.text
    assert script in merged.text
    assert len(parts(single)) == 2  # no ranks besides `about` and columns
    for name in set(SCRIPTS) - {TIME_LINE}:  # a merge drops kept steps
        digest = hashlib.sha256((STATIC / name).read_bytes()).digest()
        assert f"sha256-{base64.b64encode(digest).decode()}" in html.unescape(merged.text)
