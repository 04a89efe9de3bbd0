"""Which requests the server answers: with the token, under this machine's name, from the page itself.

A profile names files and holds source text, and any page in the same browser can send requests to
127.0.0.1. Three checks protect the profile: the token is the first part of every path; the Host
header must be a name of this server, so that a foreign name that resolves to this machine (DNS
rebinding) gets no answer; requests that a browser marks as coming from another site are refused.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flask import Request, Response

_TOKEN_BYTES: Final = 24
_SAME_SITE: Final = {"same-origin", "none"}
# The page loads nothing from elsewhere. It sets styles through the DOM, which "self" allows.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def new_token() -> str:
    """Return a token that cannot be guessed."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


class Guard:
    """Decides which requests are answered.

    Args:
        token: the secret part of the address.
        names: host names under which the server answers, besides addresses of this machine.
    """

    def __init__(self, token: str, names: Iterable[str] = ()) -> None:
        self._token = token.encode()
        self._names = {"localhost", *(name.lower() for name in names)}

    def refusal(self, request: Request, token: str) -> tuple[HTTPStatus, str] | None:
        """Return why a request is refused, None for an accepted request."""
        if not self._is_this_machine(request.headers.get("Host", "")):
            return HTTPStatus.FORBIDDEN, (
                "this server does not answer under this name; use the address that "
                "'deepcontext view' printed"
            )
        site = request.headers.get("Sec-Fetch-Site", "none")
        origin = request.headers.get("Origin")
        if site not in _SAME_SITE or (origin is not None and not _is_same(origin, request)):
            return HTTPStatus.FORBIDDEN, "requests from other sites are not answered"
        if not hmac.compare_digest(token.encode(), self._token):
            return HTTPStatus.FORBIDDEN, (
                "the address lacks the right token; use the address that 'deepcontext view' printed"
            )
        return None

    def _is_this_machine(self, host: str) -> bool:
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        name = name.lower().strip("[]")
        if name in self._names:
            return True
        try:
            # Rebinding needs a name; a client with an address already talks to this machine.
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def machine_names() -> set[str]:
    """Return the host names of this machine."""
    name = socket.gethostname()
    return {name, name.partition(".")[0], socket.getfqdn()}


def protect(response: Response) -> Response:
    """Add headers that keep other pages from framing, reading or sending data to this page."""
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _is_same(origin: str, request: Request) -> bool:
    return origin.rstrip("/").lower() == request.host_url.rstrip("/").lower()
