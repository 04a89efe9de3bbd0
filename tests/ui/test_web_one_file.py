"""The one-file page: recorded answers are those of the server, and omissions are stated."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.ui.web.app import STATIC, ViewSettings, create_app
from deepcontext.ui.web.one_file import Limits, make_page
from deepcontext.ui.web.open_profiles import OpenProfile, OpenProfiles
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from pathlib import Path

    from deepcontext.ui.web.one_file import Page


def recorded(page: Page) -> dict[str, Any]:
    packed = re.search(r'id="deepcontext-answers">([^<]*)<', page.text)
    assert packed is not None
    answers: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    return answers


@pytest.fixture
def profiles(training_folder: Path) -> OpenProfiles:
    return OpenProfiles.open([
        training_folder / "train.dcprof",
        training_folder / "troubled.dcprof",
    ])


def test_recorded_answers_are_those_of_the_server(profiles: OpenProfiles) -> None:
    client = create_app(profiles, ViewSettings("t")).test_client()
    answers = recorded(make_page(profiles))
    for question in (
        "flame?phase=backward",
        "flame?hidden=python&kind=bottom_up",
        "flame?library=1&pivot=phase",
        "flame?file=1",
        "table?by=line",
        "files",
        "findings",
    ):
        served = client.get(f"/t/api/{question}").get_json()
        assert answers[question] == served, question
    sources = [key for key in answers if key.startswith("source?")]
    assert len([key for key in sources if "metric=" not in key]) == 6
    assert any("torch.nn.functional.mse_loss" in str(answers[key]) for key in sources)


def test_at_most_two_switches_differ_from_the_start(profiles: OpenProfiles) -> None:
    answers = recorded(make_page(profiles))
    assert "flame?hidden=python&phase=forward" in answers
    assert "flame?hidden=python%2Cmodule" in answers
    assert "flame?hidden=python&library=1&phase=forward" not in answers


def test_differences_and_sandwiches_are_recorded(profiles: OpenProfiles) -> None:
    answers = recorded(make_page(profiles))
    assert "flame?kind=difference" in answers
    assert "flame?kind=difference&normalize=1" in answers
    rows = answers["table"]["rows"]
    assert f"flame?function={rows[0]['id']}&kind=callers" in answers
    assert f"flame?function={rows[0]['id']}&kind=callees" in answers


def test_the_page_is_bounded_and_states_what_it_lacks() -> None:
    profiles = OpenProfiles([OpenProfile.of_memory(random_profile(20_000, depth=20), "large")])
    page = make_page(profiles, Limits(size_bytes=300_000, tree_nodes=10**9))
    assert page.size_bytes < 900_000
    assert any("less common combinations" in notice for notice in page.notices)
    assert recorded(page)["about"]["notices"] == list(page.notices)
    assert "flame" in recorded(page)


def test_the_work_is_bounded_too() -> None:
    profiles = OpenProfiles([OpenProfile.of_memory(random_profile(20_000, depth=20), "large")])
    few = recorded(make_page(profiles, Limits(tree_nodes=100_000)))
    flames = [key for key in few if key.startswith("flame")]
    assert 5 <= len(flames) <= 6
    assert "flame" in flames


def test_without_source_no_source_text_is_in_the_page(training_folder: Path) -> None:
    profiles = OpenProfiles.open([training_folder / "train.dcprof"], source_text=False)
    page = make_page(profiles)
    answers = recorded(page)
    assert any("--no-source" in notice for notice in page.notices)
    assert "mse_loss(net(inputs)" not in json.dumps(answers)
    sources = [answers[key] for key in answers if key.startswith("source?")]
    assert all(each["parts"] == [] and each["costs"] for each in sources)


def test_the_same_profile_gives_the_same_page(training_folder: Path) -> None:
    path = training_folder / "train.dcprof"
    assert make_page(OpenProfiles.open([path])).text == make_page(OpenProfiles.open([path])).text


def test_the_page_requests_nothing_from_outside(profiles: OpenProfiles) -> None:
    text = make_page(profiles).text
    assert not re.findall(r'(?:src|href)="(?!data:)[^"]*"', text)
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text


def test_the_bundle_is_small_and_of_this_page_only() -> None:
    names = {path.name for path in STATIC.iterdir()}
    assert names == {"index.html", "app.js", "app.css", "icon.svg"}
    packed = sum(len(gzip.compress((STATIC / name).read_bytes())) for name in names)
    assert packed <= 150_000
    script = (STATIC / "app.js").read_text("utf-8")
    assert not re.findall(r"https?://(?!www\.w3\.org)", script)
    assert "eval(" not in script
