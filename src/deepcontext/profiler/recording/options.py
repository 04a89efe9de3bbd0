"""The options of a session. Each option is declared here, once.

`deepcontext.start`, the command line, the notebook's magic, the launcher, `deepcontext doctor` and
the profile file take names, defaults, help texts and rules from here; collectors read the values.
Does not say where the profile is written. Standard library only: it runs in the program under test.
"""

# Annotations are real objects here: `inspect.signature` shows them.
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self, TypedDict, TypeVar

from deepcontext.errors import UserError
from deepcontext.profiler.format.counter_names import COUNTER_NAMES
from deepcontext.profiler.recording.option_rules import (
    Flag,
    Names,
    NotAllowedError,
    Range,
    Rule,
)

_Value = TypeVar("_Value")
_FLAG: Final = Flag()


@dataclass(frozen=True, slots=True)
class Option:
    """Declaration of one option.

    Attributes:
        name: the keyword in Python; on the command line with dashes.
        default: the value if none is given.
        rule: which values are allowed.
        meaning: what the option does, one line of help.
        unit: unit of the value, which ends the option's name in the profile file; "" for none.
        placeholder: name of the value in the help of the command line; "" for a flag.
        collectors: names of the collectors that read it; none for an option of the session.
    """

    name: str
    default: Any
    rule: Rule
    meaning: str
    unit: str = ""
    placeholder: str = ""
    collectors: tuple[str, ...] = ()


def _option(*, default: _Value, meaning: str, rule: Rule = _FLAG, **more: Any) -> _Value:
    made: _Value = field(default=default, metadata={"rule": rule, "meaning": meaning, **more})
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """The options of one session. `of` makes one from unchecked values."""

    shapes: bool = _option(
        default=False,
        meaning=(
            "record operators with different input shapes or types separately, and count floating-point "
            "operations and bytes: larger profile, more overhead"
        ),
        collectors=("torch",),
    )
    gpu_calls: bool = _option(
        default=False,
        meaning="measure the time in each call of the GPU's API (launches, copies, waiting; on AMD "
        "also all other calls that do work): more overhead",
        collectors=("nvidia", "amd"),
    )
    jax_exact: bool = _option(
        default=False,
        meaning="trace compiled JAX programs all the time instead of 5 % of the time, for short "
        "programs and rare operations: about 10 % slower",
        collectors=("jax",),
    )
    stalls: bool = _option(
        default=False,
        meaning="sample why the instructions of GPU kernels wait, during a tenth of the time (NVIDIA); "
        "has hung programs on real GPUs; set DEEPCONTEXT_GPU_STALLS=may-hang to enable it",
        collectors=("nvidia",),
    )
    nccl: bool = _option(
        default=False,
        meaning="record algorithm, protocol and times of each collective of NCCL and RCCL: sets "
        "NCCL_PROFILER_PLUGIN unless it is set; more overhead",
        collectors=("nccl",),
    )
    native: bool = _option(
        default=False,
        meaning="show the C and C++ functions between Python, operators and calls of the GPU's API: "
        "larger profile, more overhead",
        collectors=("native frames",),
    )
    memory: bool = _option(
        default=True,
        meaning="track the memory of PyTorch's tensors and JAX's arrays",
        collectors=("memory", "jax"),
    )
    timeline: bool = _option(
        default=True,
        meaning="keep the time line of the 8 slowest steps, of 8 random ones and of those that the program "
        "marks: at most 64 MiB of memory",
    )
    source_text: bool = _option(
        default=True,
        meaning="keep the text of the program's own source lines, and of the lines around them, in the "
        "profile: at most 1 MiB",
    )
    holders: bool = _option(
        default=False,
        meaning="look at snapshots and at the end which Python objects hold many of PyTorch's tensors; stops "
        "the program for tenths of a second at a time, 1/500 of the run in all",
        collectors=("memory",),
    )
    cpu_rate: float = _option(
        default=100.0,
        meaning="how many times a second to sample each thread between operators, up to 1000; 0 for "
        "never",
        rule=Range(0, 1000, "samples a second; 0 for none"),
        unit="hz",
        placeholder="N",
        collectors=("cpu sampling",),
    )
    counters: tuple[str, ...] = _option(
        default=(),
        meaning="counters of the processor and the kernel to read at each of these samples, separated "
        f"by commas: {', '.join(COUNTER_NAMES)}; 'deepcontext doctor' says which can be "
        "read here",
        rule=Names("counter", COUNTER_NAMES),
        placeholder="LIST",
        collectors=("counters",),
    )
    snapshot_interval: float = _option(
        default=5.0,
        meaning="seconds between two snapshots of the profile, less at the start of the run: a crash "
        "or a signal that kills loses at most this time, and at most half of the run; 0 writes the "
        "profile only at the end",
        rule=Range(0, 1_000_000, "seconds; 0 to write only at the end"),
        unit="s",
        placeholder="SECONDS",
    )
    node_limit: int = _option(
        default=1_000_000,
        meaning="largest number of nodes in the tree of a thread, each about 160 bytes, and as many "
        "again while the profile is written; up to 4,194,304; beyond this limit, costs are counted one "
        "level up",
        # The most is that of `ThreadTree` in native/core/thread_tree.h.
        rule=Range(1, 4_194_304, "nodes a thread", is_whole=True),
        placeholder="N",
    )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the options with these values by name, and defaults for the others.

        Raises:
            TypeError: there is no option of that name.
            UserError: a value is not allowed; the message says what was expected and found.
        """
        known = {option.name: option.rule for option in OPTIONS}
        for name in values:
            if name not in known:
                raise TypeError(f"there is no option '{name}'; options are {', '.join(known)}")
        return cls(**{name: checked(name, known[name], value) for name, value in values.items()})

    def recorded(self) -> dict[str, object]:
        """Return the values as the profile file has them, by name with unit."""
        return {_recorded_name(option): _recorded(getattr(self, option.name)) for option in OPTIONS}


class OptionValues(TypedDict, total=False):
    """The options as Python keywords, for type checkers, which cannot read a table."""

    shapes: bool
    gpu_calls: bool
    jax_exact: bool
    stalls: bool
    nccl: bool
    native: bool
    memory: bool
    timeline: bool
    source_text: bool
    holders: bool
    cpu_rate: float
    counters: str | Sequence[str]
    snapshot_interval: float
    node_limit: int


OPTIONS: Final = tuple(
    Option(name=each.name, default=each.default, **each.metadata) for each in fields(SessionOptions)
)


def checked(name: str, rule: Rule, value: Any) -> Any:
    """Return the value of an option as the session needs it.

    Raises:
        UserError: the value is not allowed; the message names the option.
    """
    try:
        return rule.read(value)
    except NotAllowedError as problem:
        raise UserError(f"option {name}: {problem}") from None


def _recorded_name(option: Option) -> str:
    return f"{option.name}_{option.unit}" if option.unit else option.name


def _recorded(value: object) -> object:
    return ",".join(value) if isinstance(value, tuple) else value
