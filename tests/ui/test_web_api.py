"""What the server sends besides the page itself, and its refusals."""

from __future__ import annotations

import base64
import gzip
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.model.profile import Profile
from deepcontext.ui.measures import measures
from deepcontext.ui.web.app import ViewSettings, create_app, warm_up
from deepcontext.ui.web.one_file import page_data
from deepcontext.ui.web.open_profiles import OpenProfile, OpenProfiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from flask.testing import FlaskClient

    Ask = Callable[..., Any]

METRIC = "host_time_ns"


@pytest.fixture
def training(training_folder: Path) -> Profile:
    return Profile.load(training_folder / "train.dcprof")


@pytest.fixture
def client(training_folder: Path) -> FlaskClient:
    profiles = OpenProfiles.open([
        training_folder / "train.dcprof",
        training_folder / "empty.dcprof",
    ])
    warm_up(profiles)
    return create_app(profiles, ViewSettings("token")).test_client()


@pytest.fixture
def ask(client: FlaskClient) -> Ask:
    def answer(question: str, status: int = 200) -> Any:
        response = client.get(f"/token/api/{question}")
        assert response.status_code == status, response.get_data(as_text=True)
        return response.get_json()

    return answer


def test_about_names_the_open_profiles_and_their_trust_report(ask: Ask) -> None:
    answer = ask("about")
    train, empty = answer["profiles"]
    assert train["name"] == "train.dcprof"
    assert [each["key"] for each in train["measures"]] == [METRIC, "call_duration_ns.count"]
    assert [each["label"] for each in train["measures"]] == ["host time", "calls"]
    assert train["layers"] == ["python", "scope", "module", "operator"]
    assert train["phases"] == ["forward", "backward", "optimizer", "data_loading", "other"]
    assert train["tables"] == ["operator", "module", "line", "scope"]
    assert ["steps", "4"] in train["facts"]
    assert train["warnings"] == []
    assert empty["collectors"][0]["status"] == "off"


def test_warnings_of_a_profile_reach_the_page(training_folder: Path) -> None:
    profiles = OpenProfiles.open([training_folder / "troubled.dcprof"])
    client = create_app(profiles, ViewSettings("token")).test_client()
    profile = client.get("/token/api/about").get_json()["profiles"][0]
    assert profile["warnings"] == list(profiles.get(0).profile.trust.warnings)
    assert len(profile["warnings"]) == 3


def test_a_changed_or_missing_source_file_is_reported(ask: Ask, training_folder: Path) -> None:
    script = training_folder / "train.py"
    os.utime(script)
    assert "was changed after the program started" in ask(f"text?path={script}")["note"]
    script.write_text("one line\n")
    assert ask(f"text?path={script}")["length"] == 1
    script.unlink()
    answer = ask(f"text?path={script}")
    assert "cannot be read on this machine" in answer["note"]
    assert answer["parts"] == []


def test_long_files_are_sent_around_their_costs(ask: Ask, training_folder: Path) -> None:
    script = training_folder / "train.py"
    script.write_text("x\n" * 50_000)
    answer = ask(f"text?path={script}")
    assert [(part["first"], len(part["lines"])) for part in answer["parts"]] == [(1, 43)]


def test_sections_are_passed_on(training: Profile) -> None:
    content = [{"id": "hotspot", "nodes": [3]}]
    profile = training.with_section("findings", json.dumps(content).encode())
    profile = profile.with_section("blob", b"\xff\xfe")
    profiles = OpenProfiles([OpenProfile.of_memory(profile, "p")])
    client = create_app(profiles, ViewSettings("token")).test_client()
    assert client.get("/token/api/section?name=findings").get_json()["content"] == content
    refused = client.get("/token/api/section?name=blob")
    assert refused.status_code == 400
    assert "is not JSON" in refused.get_json()["error"]


def test_a_changed_file_is_reported_until_the_page_is_loaded_again(
    ask: Ask, training_folder: Path
) -> None:
    ask("findings")
    path = training_folder / "train.dcprof"
    Profile.load(training_folder / "empty.dcprof").save(path)
    assert "has changed since this page was loaded" in ask("columns", status=409)["error"]
    assert ask("about")["profiles"][0]["node_count"] == 1
    assert ask("findings")["findings"] == []


def test_a_deleted_file_is_reported(ask: Ask, training_folder: Path) -> None:
    (training_folder / "train.dcprof").unlink()
    assert "does not exist any more" in ask("columns", status=410)["error"]
    assert "does not exist any more" in ask("about", status=410)["error"]


def test_a_file_that_became_something_else_is_reported(ask: Ask, training_folder: Path) -> None:
    (training_folder / "train.dcprof").write_bytes(b"nonsense")
    assert "train.dcprof" in ask("about", status=500)["error"]


@pytest.mark.parametrize("question", ["columns", "findings"])
def test_an_unchanged_answer_is_not_sent_again(client: FlaskClient, question: str) -> None:
    first = client.get(f"/token/api/{question}")
    assert first.headers["Cache-Control"] == "private, no-cache"
    same = {"If-None-Match": first.headers["ETag"]}
    again = client.get(f"/token/api/{question}", headers=same)
    assert again.status_code == 304
    assert again.data == b""
    assert client.get(f"/token/api/{question}?file=1", headers=same).status_code == 200


def test_answers_are_compressed_for_clients_that_accept_it(client: FlaskClient) -> None:
    plain = client.get("/token/api/about")
    packed = client.get("/token/api/about", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert packed.headers["ETag"] != plain.headers["ETag"]


def test_columns_are_those_of_the_one_file_page(client: FlaskClient, training_folder: Path) -> None:
    def columns(packed: bytes) -> tuple[Any, bytes]:
        plain = gzip.decompress(packed)
        size = int.from_bytes(plain[:4], "little")
        described = json.loads(plain[4 : 4 + size])
        return (described["header"]["facts"], described["arrays"]), plain[4 + size :]

    sent = client.get("/token/api/columns", headers={"Accept-Encoding": "gzip"})
    assert sent.headers["Content-Encoding"] == "gzip"  # the browser unpacks it
    assert gzip.decompress(sent.data) == client.get("/token/api/columns").data
    _, embedded = page_data(OpenProfiles.open([training_folder / "train.dcprof"]))
    assert columns(sent.data) == columns(base64.b64decode(embedded))


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("columns?file=7", "no profile 7"),
        ("columns?file=-1", "'file' must be a whole number"),
        ("findings?file=99999999999999999999", "'file' must be a whole number"),
        ("profile?file=x", "'file' must be a whole number"),
        ("text?path=/etc/passwd", "names no such source file"),
        ("section?name=moon", "no section 'moon'"),
    ],
)
def test_bad_questions_are_refused_with_the_reason(ask: Ask, question: str, message: str) -> None:
    assert message in ask(question, status=400)["error"]


@pytest.mark.parametrize("what", ["flame", "node", "functions", "find", "table", "files", "source"])
def test_the_server_computes_no_answer_of_the_engine(ask: Ask, what: str) -> None:
    ask(what, status=404)


def test_the_number_of_samples_is_no_measure(training_folder: Path) -> None:
    profile = Profile.load(training_folder / "troubled.dcprof")
    keys = {measure.key for measure in measures(profile)}
    assert "sampled_cpu_time_ns" in keys
    assert "sampled_cpu_time_ns.count" not in keys
