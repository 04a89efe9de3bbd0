"""Show options as parameters: `help` and `inspect.signature` of a function with ``**options``."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

from deepcontext.profiler.recording.options import OPTIONS, OptionValues

if TYPE_CHECKING:
    from collections.abc import Callable

_Function = TypeVar("_Function", bound="Callable[..., Any]")
# CPython 3.13 and later take the indentation out of docstrings.
_SUMMARY: Final = re.compile(r"^( +)options: the options of the session\.\n", re.MULTILINE)


def shows_options(function: _Function) -> _Function:
    """Replace ``**options`` by the single options, in the signature and in the docstring."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[:-1]
    parameters += [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=OptionValues.__annotations__[option.name],
        )
        for option in OPTIONS
    ]
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    if function.__doc__:  # python -OO leaves docstrings out
        function.__doc__ = _SUMMARY.sub(
            lambda found: "".join(f"{found[1]}{each.name}: {each.meaning}.\n" for each in OPTIONS),
            function.__doc__,
        )
    return function
