"""The Flask application: routes, status codes, caching. Other modules compute the answers.

Invariant: every answer is a function of the open profiles and the address; the server keeps no state about
its clients, and only a file that is dropped on the page, or steps that are chosen there, change which
profiles are open.
"""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

import deepcontext
from deepcontext.errors import DeepContextError, UserError
from deepcontext.ui.web.about import about
from deepcontext.ui.web.answers import ErrorAnswer, OpenedAnswer
from deepcontext.ui.web.ask import QUESTIONS, file_of, number_of
from deepcontext.ui.web.guard import Guard, protect
from deepcontext.ui.web.json_text import to_json
from deepcontext.ui.web.open_profiles import ChangedFileError, GoneFileError, OpenProfile
from deepcontext.ui.web.source_text import NO_TEXT
from deepcontext.ui.web.static_files import STATIC

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deepcontext.ui.web.open_profiles import OpenProfiles

    Ask = Callable[[OpenProfiles, Mapping[str, str]], object]

# Not `mimetypes`, because its answers depend on the machine's settings.
_STATIC_FILES: Final = {
    "index.html": "text/html",
    "app.js": "text/javascript",
    "app.css": "text/css",
    "engine.js": "text/javascript",
    "jobs.js": "text/javascript",
    "roofline.js": "text/javascript",
    "timeline.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
# Answers that also depend on other files, or on their current content.
_NOT_OF_THE_PROFILE: Final = {"about", "current", "one_file", "roofline", "text"}
# Made with `gzip`. The browser unpacks what arrives while it waits for the rest.
_CONTAINERS: Final = {"columns", "ranks"}
_VERSION: Final = deepcontext.__version__
_LONGEST_ADDRESS: Final = 8_192
_WORTH_COMPRESSING: Final = 1_400  # one network packet


@dataclasses.dataclass(frozen=True, slots=True)
class ViewSettings:
    """Settings of the server.

    Attributes:
        token: secret part of the address.
        names: host names under which the server answers.
    """

    token: str
    names: tuple[str, ...] = ()


def create_app(profiles: OpenProfiles, settings: ViewSettings) -> Flask:
    """Make the application that serves a page for some profiles.

    Args:
        profiles: the profiles.
        settings: settings of the server.
    """
    app = Flask("deepcontext", static_folder=None)
    guard = Guard(settings.token, settings.names)

    @app.before_request
    def refuse() -> Response | None:
        token = (request.view_args or {}).get("token", request.path.split("/")[1])
        refusal = guard.refusal(request, token)
        if refusal is None and len(request.full_path) > _LONGEST_ADDRESS:
            refusal = HTTPStatus.REQUEST_URI_TOO_LONG, "the address is too long"
        return None if refusal is None else _error(refusal[1], refusal[0])

    app.after_request(protect)
    app.register_error_handler(DeepContextError, _on_error)
    app.register_error_handler(HTTPException, _on_http_error)
    _add_page(app)
    notices = () if profiles.source_text else (NO_TEXT,)
    questions = {"about": lambda profiles, _: about(profiles, notices), **QUESTIONS}
    for name, ask in questions.items():
        app.add_url_rule(f"/<token>/api/{name}", name, _endpoint(profiles, name, ask))
    app.add_url_rule("/<token>/api/open", "open", _opening(profiles), methods=["POST"])
    app.add_url_rule("/<token>/api/steps", "steps", _opening_steps(profiles), methods=["POST"])
    return app


def _add_page(app: Flask) -> None:
    @app.get("/<token>/")
    def page(token: str) -> Response:  # noqa: ARG001  checked before any route runs
        return _file("index.html")

    @app.get("/<token>/static/<name>")
    def static(token: str, name: str) -> Response:  # noqa: ARG001  the same
        if name not in _STATIC_FILES or name == "index.html":
            return _error(f"this page has no file '{name}'", HTTPStatus.NOT_FOUND)
        return _file(name)


def _file(name: str) -> Response:
    content = (STATIC / name).read_bytes()
    return _cached(_packed(content, HTTPStatus.OK, _STATIC_FILES[name]), content)


def _cached(response: Response, content: bytes, tag: str | None = None) -> Response:
    """Let the browser cache the response, but revalidate it at each use."""
    response.headers["Cache-Control"] = "private, no-cache"
    response.set_etag(tag or hashlib.sha256(content).hexdigest()[:32])
    response.make_conditional(request)
    return response


def _endpoint(profiles: OpenProfiles, name: str, ask: Ask) -> Callable[..., Response]:
    def answer(token: str) -> Response:  # noqa: ARG001  checked before any route runs
        tag = None if name in _NOT_OF_THE_PROFILE else _tag(profiles)
        if tag is not None and tag in request.if_none_match:
            return _cached(Response(status=HTTPStatus.NOT_MODIFIED), b"", tag)
        given = ask(profiles, request.args)
        if isinstance(given, bytes):
            response = Response(given, mimetype="application/octet-stream")
            if name in _CONTAINERS:
                response.headers["Vary"] = "Accept-Encoding"
                if _accepts_gzip():
                    response.headers["Content-Encoding"] = "gzip"
                else:
                    response.set_data(gzip.decompress(given))
        else:
            response = _json(given, HTTPStatus.OK)
        return _cached(response, response.get_data(), tag)

    return answer


def _opening(profiles: OpenProfiles) -> Callable[..., Response]:
    def opened(token: str) -> Response:  # noqa: ARG001  checked before any route runs
        read = OpenProfile.of_stream(request.stream, request.args.get("name", ""))
        return _json(OpenedAnswer(profiles.add(read)), HTTPStatus.OK)

    return opened


def _opening_steps(profiles: OpenProfiles) -> Callable[..., Response]:
    def opened(token: str) -> Response:  # noqa: ARG001  checked before any route runs
        file, first, last = (number_of(request.args, name) for name in ("file", "first", "last"))
        return _json(OpenedAnswer(profiles.add_steps(file, first, last)), HTTPStatus.OK)

    return opened


def _tag(profiles: OpenProfiles) -> str:
    """Return a tag that changes exactly when the answer to this request changes."""
    version = profiles.get(file_of(request.args)).version
    encoding = "gzip" if _accepts_gzip() else ""
    seed = f"{_VERSION}\n{encoding}\n{request.full_path}\n{version}"
    return hashlib.sha256(seed.encode()).hexdigest()[:32]


def _accepts_gzip() -> bool:
    return request.accept_encodings.best_match(["gzip"]) is not None


def warm_up(profiles: OpenProfiles) -> None:
    """Make the columns of the profiles that are read, so that they are kept when the page asks."""
    for index in profiles.loaded():
        QUESTIONS["columns"](profiles, {"file": str(index)})


def _json(answer: object, status: HTTPStatus) -> Response:
    return _packed(to_json(answer).encode(), status, "application/json")


def _packed(content: bytes, status: HTTPStatus, kind: str) -> Response:
    response = Response(content, status, mimetype=kind)
    response.headers["Vary"] = "Accept-Encoding"
    if len(content) > _WORTH_COMPRESSING and _accepts_gzip():
        # Without a time stamp, so that equal answers give equal bytes.
        response.set_data(gzip.compress(content, compresslevel=3, mtime=0))
        response.headers["Content-Encoding"] = "gzip"
    return response


def _error(message: str, status: HTTPStatus) -> Response:
    return _json(ErrorAnswer(message), status)


def _on_error(error: DeepContextError) -> Response:
    match error:
        case ChangedFileError():
            status = HTTPStatus.CONFLICT
        case GoneFileError():
            status = HTTPStatus.GONE
        case UserError():
            status = HTTPStatus.BAD_REQUEST
        case _:
            status = HTTPStatus.INTERNAL_SERVER_ERROR
    return _error(str(error), status)


def _on_http_error(error: HTTPException) -> Response:
    status = HTTPStatus(error.code or HTTPStatus.INTERNAL_SERVER_ERROR)
    messages = {
        HTTPStatus.NOT_FOUND: "there is nothing at this address",
        HTTPStatus.METHOD_NOT_ALLOWED: f"this address does not accept {request.method}",
    }
    return _error(messages.get(status, error.description or status.phrase), status)
