"""Every error deepcontext raises on purpose.

    DeepContextError
    +-- UserError           the request cannot be met as it was made         exit 2
    |   +-- SessionError    a session is already running, or none is
    |   +-- QueryError      a query or an option names something unknown
    +-- LimitExceededError  a value is above the limit that was asked for    exit 3
    +-- EnvironmentProblem  this machine or an installed package lacks something   exit 4
    +-- ProfileDataError    a profile file is damaged, foreign or too new    exit 5

Anything else that escapes is a bug in deepcontext (exit 70). Messages say what failed, on what, what was
found against expected, and what to do; the command line adds the "error:" prefix.
"""

from __future__ import annotations

from typing import ClassVar


class DeepContextError(Exception):
    """Base of every error raised on purpose; `exit_code` is what the command line exits with."""

    exit_code: ClassVar[int] = 70


class UserError(DeepContextError):
    """The request cannot be met as it was made."""

    exit_code = 2


class SessionError(UserError):
    """A session is already running, or none is."""


class QueryError(UserError):
    """A query or an option names something that does not exist."""


class LimitExceededError(DeepContextError):
    """A measured value lies above the limit that was asked for."""

    exit_code = 3


class EnvironmentProblem(DeepContextError):  # noqa: N818  `EnvironmentError` is Python's own name
    """This machine or an installed package lacks something that was asked for."""

    exit_code = 4


class ProfileDataError(DeepContextError):
    """A profile file is damaged, foreign, or written by a newer version."""

    exit_code = 5
