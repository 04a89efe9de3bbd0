"""Show options as parameters: `help` and `inspect.signature` of a function with ``**options``."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, TypeVar

from deepcontext.profiler.recording.options import OPTIONS, OptionValues

if TYPE_CHECKING:
    from collections.abc import Callable

_Function = TypeVar("_Function", bound="Callable[..., Any]")
_SUMMARY: Final = "        options: the options of the session.\n"


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
        each = "".join(f"        {option.name}: {option.meaning}.\n" for option in OPTIONS)
        function.__doc__ = function.__doc__.replace(_SUMMARY, each)
    return function
