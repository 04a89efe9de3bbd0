"""The errors that deepcontext raises on purpose, with the exit code of the command line.

    DeepContextError
    +-- UserError           the request is wrong or cannot be fulfilled             exit 2
    |   +-- SessionError    another session is running, or no session is running
    |   +-- QueryError      a query or an option names something unknown
    +-- LimitExceededError  a measured value is above the requested limit           exit 3
    +-- EnvironmentProblem  the machine or an installed package lacks something     exit 4
    +-- ProfileDataError    a profile file is damaged, foreign or too new           exit 5

Any other exception is a bug in deepcontext (exit 70). A message says what failed, on what, what was found
against expected, and what to do; the command line adds the prefix "error:".
"""

from __future__ import annotations

from typing import ClassVar


class DeepContextError(Exception):
    """Base class of these errors; `exit_code` is the exit code of the command line."""

    exit_code: ClassVar[int] = 70


class UserError(DeepContextError):
    """The request is wrong or cannot be fulfilled."""

    exit_code = 2


class SessionError(UserError):
    """Another session is running, or no session is running."""


class QueryError(UserError):
    """A query or an option names something that does not exist."""


class LimitExceededError(DeepContextError):
    """A measured value is above the requested limit."""

    exit_code = 3


class EnvironmentProblem(DeepContextError):  # noqa: N818  `EnvironmentError` is Python's own name
    """The machine or an installed package lacks something that was requested."""

    exit_code = 4


class ProfileDataError(DeepContextError):
    """A profile file is damaged, foreign, or written by a newer version."""

    exit_code = 5
