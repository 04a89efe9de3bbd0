"""`deepcontext mcp`: answer an agent's questions about profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.errors import EnvironmentProblem
from deepcontext.ui.cli.command import Parser
from deepcontext.ui.cli.inputs import load_all, load_one

if TYPE_CHECKING:
    import argparse


def make_parser() -> Parser:
    """Return the parser of the words after the command's name."""
    return Parser(
        "deepcontext mcp",
        usage="deepcontext mcp [-h]",
        description="Answer an agent's questions about profiles, over the Model Context Protocol on\n"
        "standard input and output. The agent starts this command. The command writes nothing; it reads\n"
        "profiles and the source files that they name. Needs deepcontext-profiler[mcp].",
        epilog="""\
examples:
  deepcontext mcp
  claude mcp add deepcontext -- deepcontext mcp
  {"mcpServers": {"deepcontext": {"command": "deepcontext", "args": ["mcp"]}}}    in a configuration

tools: explain, summary, top, paths, findings, source, diff

exit codes:
  0 the agent closed standard input, 4 the package 'mcp' is not installed""",
    )


def run(_: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    try:
        from deepcontext.ui.mcp.server import make_server  # noqa: PLC0415  an extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        raise EnvironmentProblem(
            "the package 'mcp' is not installed; install it with: "
            'pip install "deepcontext-profiler[mcp]"'
        ) from error
    from deepcontext import __version__  # noqa: PLC0415  the native core knows it

    make_server(load_one, load_all, __version__).run("stdio")
    return 0
