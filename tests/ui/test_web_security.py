"""Which requests the server answers, and what it never reveals."""

from __future__ import annotations

import re
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.ui.web.app import ViewSettings, create_app
from deepcontext.ui.web.guard import new_token
from deepcontext.ui.web.one_file import make_page
from deepcontext.ui.web.open_profiles import OpenProfile, OpenProfiles

if TYPE_CHECKING:
    from pathlib import Path

    from flask.testing import FlaskClient

SCRIPT = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
PATHS = ("", "static/app.js", "api/about", "api/columns", "api/text?path=x")


@pytest.fixture
def client(training_folder: Path) -> FlaskClient:
    profiles = OpenProfiles.open([training_folder / "train.dcprof"])
    return create_app(profiles, ViewSettings("right-token")).test_client()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", ["wrong", "right-toke", "right-token2", "%00", "ü"])
def test_a_wrong_token_gets_nothing(client: FlaskClient, token: str, path: str) -> None:
    response = client.get(f"/{token}/{path}")
    assert response.status_code == 403
    assert "lacks the right token" in response.get_json()["error"]


@pytest.mark.parametrize(
    "path", ["/", "/api/about", "/static/app.js", "/favicon.ico", "//", "/?token=x"]
)
def test_no_token_gets_nothing(client: FlaskClient, path: str) -> None:
    assert client.get(path).status_code == 403


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example"]
)
def test_a_foreign_host_name_gets_nothing(client: FlaskClient, host: str, path: str) -> None:
    response = client.get(f"/right-token/{path}", headers={"Host": host})
    assert response.status_code == 403
    assert "does not answer under this name" in response.get_json()["error"]


@pytest.mark.parametrize("host", ["127.0.0.1:5000", "localhost", "localhost:1", "[::1]:5000"])
def test_names_of_this_machine_are_answered(client: FlaskClient, host: str) -> None:
    assert client.get("/right-token/api/about", headers={"Host": host}).status_code == 200


def test_the_machines_own_name_is_answered_when_listening_beyond_it(
    training_folder: Path,
) -> None:
    profiles = OpenProfiles.open([training_folder / "train.dcprof"])
    client = create_app(profiles, ViewSettings("t", names=("box",))).test_client()
    assert client.get("/t/api/about", headers={"Host": "BOX:8000"}).status_code == 200
    assert client.get("/t/api/about", headers={"Host": "box2:8000"}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_requests_of_other_sites_get_nothing(client: FlaskClient, headers: dict[str, str]) -> None:
    response = client.get("/right-token/api/about", headers=headers)
    assert response.status_code == 403
    assert "requests from other sites" in response.get_json()["error"]


def test_requests_of_the_page_are_answered(client: FlaskClient) -> None:
    headers = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
    assert client.get("/right-token/api/about", headers=headers).status_code == 200


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
def test_nothing_can_be_written(client: FlaskClient, method: str) -> None:
    assert getattr(client, method)("/right-token/api/about").status_code == 405


@pytest.mark.parametrize(
    "name",
    [
        "../app.py",
        "..%2fapp.py",
        "%2e%2e/app.py",
        "index.html",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "",
    ],
)
def test_no_file_but_those_of_the_page_is_served(client: FlaskClient, name: str) -> None:
    assert client.get(f"/right-token/static/{name}").status_code == 404


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../../../etc/passwd", "{script}/../train.py", "{folder}/other.py", "", "%00"],
)
def test_no_source_but_that_of_the_profile_is_read(
    client: FlaskClient, training_folder: Path, path: str
) -> None:
    (training_folder / "other.py").write_text("secret = 1\n")
    asked = path.format(script=training_folder / "train.py", folder=training_folder)
    response = client.get("/right-token/api/text", query_string={"path": asked})
    assert response.status_code == 400
    assert "secret" not in response.get_data(as_text=True)


def test_a_link_in_the_place_of_a_source_file_is_text_or_nothing(
    client: FlaskClient, training_folder: Path
) -> None:
    script = training_folder / "train.py"
    script.unlink()
    script.symlink_to("/dev/zero")
    answer = client.get("/right-token/api/text", query_string={"path": str(script)}).get_json()
    assert answer["parts"] == []
    assert answer["note"] == "the file is not source text"


@pytest.mark.parametrize("path", PATHS)
def test_other_pages_can_neither_embed_nor_read_nor_call_the_page(
    client: FlaskClient, path: str
) -> None:
    headers = client.get(f"/right-token/{path}").headers
    policy = dict(
        part.strip().partition(" ")[::2] for part in headers["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Referrer-Policy"] == "no-referrer"


def test_refusals_carry_the_same_headers(client: FlaskClient) -> None:
    assert "Content-Security-Policy" in client.get("/wrong/").headers


def hostile_profile(make_profile: Any) -> Any:
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.PYTHON, SCRIPT, f"/home/me/{SCRIPT}.py", 1),
        Frame(FrameKind.OPERATOR, SCRIPT),
    ]
    return make_profile([0, 0, 1], frames, host_time_ns={2: 5}, call_samples_ns={2: [5]})


def test_script_in_names_is_never_sent_as_a_page(make_profile: Any) -> None:
    profiles = OpenProfiles([OpenProfile.of_memory(hostile_profile(make_profile), SCRIPT)])
    client = create_app(profiles, ViewSettings("t")).test_client()
    for path, kind in (
        ("about", "json"),
        ("findings", "json"),
        (f"text?path=/home/me/{SCRIPT}.py", "json"),
        ("columns", "octet-stream"),
    ):
        response = client.get(f"/t/api/{path}")
        assert response.status_code == 200
        assert response.mimetype == f"application/{kind}"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
    refused = client.get("/t/api/section", query_string={"name": SCRIPT})
    assert refused.status_code == 400
    assert refused.mimetype == "application/json"


def test_script_in_names_stays_out_of_the_one_file_page(make_profile: Any) -> None:
    profiles = OpenProfiles([OpenProfile.of_memory(hostile_profile(make_profile), SCRIPT)])
    page = make_page(profiles).text
    assert "alert(1)" not in page
    assert page.count("<script") == page.count("</script>") == 3
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "unsafe" not in policy[1]


def test_tokens_differ_and_are_long() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert min(map(len, tokens)) >= 32


def test_an_overlong_address_is_refused(client: FlaskClient) -> None:
    response = client.get(f"/right-token/api/text?path={'x' * 9000}")
    assert response.status_code == 414


def test_a_file_that_is_sent_is_opened_under_its_own_name(
    client: FlaskClient, training_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    content = (training_folder / "train.dcprof").read_bytes()
    answer = client.post("/right-token/api/open?name=../../a.dcprof", data=content)
    assert (answer.status_code, answer.get_json()) == (200, {"file": 1})
    about = client.get("/right-token/api/about").get_json()
    assert [each["name"] for each in about["profiles"]] == ["train.dcprof", "a.dcprof"]
    assert about["compared"] == 2
    assert client.get("/right-token/api/columns?file=1").status_code == 200
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"hello", b"DEEPCTX" + b"\0" * 50])
def test_a_file_that_cannot_be_read_opens_nothing(client: FlaskClient, content: bytes) -> None:
    answer = client.post("/right-token/api/open?name=%00a.txt", data=content)
    assert answer.status_code == 400
    assert "'a.txt'" in answer.get_json()["error"]
    assert len(client.get("/right-token/api/about").get_json()["profiles"]) == 1


def test_only_the_page_itself_may_send_files(client: FlaskClient) -> None:
    for token, headers in (("wrong", {}), ("right-token", {"Sec-Fetch-Site": "cross-site"})):
        assert client.post(f"/{token}/api/open", data=b"x", headers=headers).status_code == 403
    for method in (client.get, client.put):
        assert method("/right-token/api/open").status_code == 405
    assert client.post("/right-token/api/about").status_code == 405
