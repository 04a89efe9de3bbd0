"""What the launcher tells the program's interpreter, through one environment variable.

Does not read or change the environment itself (`command.py` writes it, `path/sitecustomize.py`
takes it away again).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

VARIABLE: Final = "DEEPCONTEXT_LAUNCH"


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """How the session of a launched program is set up, and what happens at its end.

    Attributes:
        output: absolute path of the profile file.
        label: the same path as the person typed it, for messages.
        script: the program as the person typed it, without its arguments.
        shapes: whether operators are told apart by the shapes of their inputs.
        gpu_calls: whether the calls of a GPU's API are measured.
        jax_exact: whether compiled JAX programs are sampled without a gap.
        stalls: whether the reasons why GPU instructions wait are sampled.
        native: whether native frames are collected.
        memory: whether the memory that frameworks allocate is followed.
        cpu_rate_hz: samples a second of each thread's place between operators; 0 for none.
        counters: names of the counters that samples read.
        node_limit: most nodes a thread's tree may have.
        snapshot_interval_s: time between two snapshots of the profile, in seconds.
        report: whether a short report is printed when the program ends.
        quiet: whether nothing but a failure of the profiler is printed.
        strict: whether a program that succeeds exits with an error when its profile has one.
        force: whether the file to write is replaced even where it is no profile.
        import_folder: what the interpreter will put first on `sys.path`.
        timings: path of a JSON file that gets what start and stop cost, or "" for none.
    """

    output: str
    label: str
    script: str = ""
    shapes: bool = False
    gpu_calls: bool = False
    jax_exact: bool = False
    stalls: bool = False
    native: bool = False
    memory: bool = True
    cpu_rate_hz: float = 100.0
    counters: tuple[str, ...] = ()
    node_limit: int = 1_000_000
    snapshot_interval_s: float = 5.0
    report: bool = True
    quiet: bool = False
    strict: bool = False
    force: bool = False
    import_folder: str = ""
    timings: str = ""

    def to_json(self) -> str:
        """Return the options as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> LaunchOptions:
        """Build the options from `to_json`'s text."""
        return cls(**json.loads(text))
