"""A server of the Model Context Protocol on standard input and output.

The official SDK (`mcp` on PyPI, an extra) implements the protocol; `answers.py` makes the answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from deepcontext.errors import DeepContextError
from deepcontext.ui.mcp.answers import Answers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deepcontext.profiler.model.profile import Profile

_INSTRUCTIONS: Final = """\
Profiles of deep-learning programs (PyTorch, JAX), written by `deepcontext profile train.py`. A profile is a
file *.dcprof; a job of several processes is a directory *.dcrun. Begin with `explain`, which has the
costliest lines with their source; then `findings` and `top`; `source` shows what lines cost, `diff` what
changed between two profiles. Times are in ns. `inclusive` counts what a line or operator calls,
`exclusive` does not. A bound of a finding is the most that a change can save, not what it will save:
measure again after each change."""


def make_server(
    load: Callable[[str], Profile], load_all: Callable[[str], Sequence[Profile]], version: str
) -> MCPServer[Any]:
    """Return the server.

    Args:
        load: returns the profile of a file, or the profile to show of a run directory.
        load_all: returns the profile of a file, or all profiles of a run directory.
        version: version of deepcontext.
    """
    server: MCPServer[Any] = MCPServer(
        "deepcontext", version=version, instructions=_INSTRUCTIONS, log_level="ERROR"
    )
    answers = Answers(load, load_all)

    @server.tool()
    def explain(file: str) -> dict[str, Any]:
        """What limits a program, where the time goes, costly lines with source, findings, and doubts."""
        return _told(lambda: answers.explain(file))

    @server.tool()
    def summary(file: str) -> dict[str, Any]:
        """What was run, where the time went by phase, the titles of findings, what the profile lacks."""
        return _told(lambda: answers.summary(file))

    @server.tool()
    def top(
        file: str, of: str = "lines", metric: str | None = None, limit: int = 10
    ) -> dict[str, Any]:
        """The costliest lines, operators, modules, scopes or kernels (`of`), by a metric of the profile."""
        return _told(lambda: answers.top(file, of, metric, limit))

    @server.tool()
    def paths(file: str, metric: str | None = None, limit: int = 10) -> dict[str, Any]:
        """The call paths with the largest own value: thread, Python, module, operator, kernel."""
        return _told(lambda: answers.paths(file, metric, limit))

    @server.tool()
    def findings(file: str) -> dict[str, Any]:
        """What to change, where, why, the largest possible gain, and when the advice misleads."""
        return _told(lambda: answers.findings(file))

    @server.tool()
    def source(
        file: str,
        source_file: str,
        first: int = 1,
        last: int | None = None,
        metric: str | None = None,
    ) -> dict[str, Any]:
        """Lines of a source file that the profile `file` names, with what each costs."""
        return _told(lambda: answers.source(file, source_file, first, last, metric))

    @server.tool()
    def diff(before: str, after: str, limit: int = 10) -> dict[str, Any]:
        """What changed between two profiles, per step where both mark steps."""
        return _told(lambda: answers.diff(before, after, limit))

    return server


def _told(ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return ask()
    except DeepContextError as error:  # the agent can read it and ask again
        raise ToolError(str(error)) from error
