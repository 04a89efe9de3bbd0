"""Run the page's server until the user interrupts it."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Final

from werkzeug.serving import WSGIRequestHandler, make_server

from deepcontext.errors import EnvironmentProblem

if TYPE_CHECKING:
    from flask import Flask
    from werkzeug.serving import BaseWSGIServer

_EVERYWHERE: Final = {"0.0.0.0", "::", ""}  # noqa: S104  compared with, not bound to


class _QuietHandler(WSGIRequestHandler):
    """Does not print a line for each request."""

    protocol_version = "HTTP/1.1"  # keeps the connection open for a page's many small requests

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Print nothing."""


def bind(app: Flask, host: str, port: int) -> BaseWSGIServer:
    """Return a server that listens, and answers once `serve_forever` is called.

    Args:
        app: the application.
        host: address to listen on.
        port: port to listen on; 0 takes any free one.

    Raises:
        EnvironmentProblem: the port is taken, or the address is not one of this machine.
    """
    try:
        # werkzeug ends the process when a port is taken, so the socket is made here.
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        # Without Python's suffix "(while attempting to bind on address ...)".
        reason = str(reason).partition(" (while ")[0]
        raise EnvironmentProblem(
            f"cannot listen on {host} port {port}: {reason}; choose others with --port or --host"
        ) from error
    with listener:
        server = make_server(
            host, port, app, threaded=True, request_handler=_QuietHandler, fd=listener.fileno()
        )
    server.port = server.socket.getsockname()[1]
    return server


def address(host: str, port: int, token: str) -> str:
    """Return the address to open in a browser on this machine."""
    if host in _EVERYWHERE:
        host = "127.0.0.1"
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/{token}/"


def tunnel(port: int) -> str | None:
    """Return the command that makes the page reachable from the machine of a remote user.

    Returns:
        None outside a remote shell.
    """
    connection = os.environ.get("SSH_CONNECTION", "").split()
    if not connection:
        return None
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or "USER"
    server = connection[2] if len(connection) > 2 else socket.gethostname()  # noqa: PLR2004
    return f"ssh -N -L {port}:127.0.0.1:{port} {user}@{server}"
