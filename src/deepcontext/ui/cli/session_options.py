"""Options of a session that more than one sub-command takes.

`profile` and `overhead` share them, so that overhead is measured at the settings one profiles with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.profiler.format.counter_names import COUNTER_NAMES
from deepcontext.profiler.recording.options import CPU_RATE, NODE_LIMIT, SNAPSHOT_INTERVAL
from deepcontext.ui.cli.command import counter_names, number_in, whole_number_in

if TYPE_CHECKING:
    from deepcontext.ui.cli.command import Parser


def add_session_options(parser: Parser) -> None:
    """Add the options that shape a session, and the ways to name a program."""
    parser.option(
        "--shapes",
        action="store_true",
        help="tell operators apart by the shapes of their inputs: a larger tree, and dearer",
    )
    parser.option(
        "--gpu-calls",
        action="store_true",
        help="measure how long the program spends in each call of the GPU's API (launches, copies, "
        "waiting; on AMD every other call that does something, too): dearer",
    )
    parser.option(
        "--jax-exact",
        action="store_true",
        help="look into compiled JAX programs all the time instead of a twentieth of it: for short "
        "programs; costs about a tenth of their speed",
    )
    parser.option(
        "--stalls",
        action="store_true",
        help="sample why the instructions of GPU kernels wait, a tenth of the time (NVIDIA); often "
        "needs administrator rights, takes 80 MB of the device's memory",
    )
    parser.option(
        "--native",
        action="store_true",
        help="show the C and C++ functions between Python, operators and calls of the GPU's API "
        "(x86-64): a larger tree, and dearer",
    )
    parser.option(
        "--no-memory",
        action="store_true",
        help="do not follow the memory of PyTorch's tensors and JAX's arrays",
    )
    parser.option(
        "--cpu-rate",
        type=number_in(CPU_RATE),
        default=100.0,
        metavar="N",
        help="look N times a second where each thread is between operators, up to 1000; 0 for "
        "never (default: 100)",
    )
    parser.option(
        "--counters",
        type=counter_names,
        default=(),
        metavar="LIST",
        help="read these counters of the processor and the kernel at each sample: "
        f"{', '.join(COUNTER_NAMES)}; 'deepcontext doctor' says which there are (default: none)",
    )
    parser.option(
        "--snapshot-interval",
        type=number_in(SNAPSHOT_INTERVAL),
        default=5.0,
        metavar="SECONDS",
        help="write the profile so often while the program runs, and more often at its start: a crash "
        "or a signal that kills loses no more than this, and no more than half of the run; 0 writes "
        "it at the end only (default: 5)",
    )
    parser.option(
        "--node-limit",
        type=whole_number_in(NODE_LIMIT),
        default=1_000_000,
        metavar="N",
        help="most nodes a thread's tree may have, each about 160 bytes; what comes after is counted "
        "one level up (default: 1000000)",
    )
    parser.option(
        "-m", dest="module", metavar="MODULE", help="run a module, as 'python -m MODULE' does"
    )
    parser.option("-c", dest="code", metavar="CODE", help="run CODE, as 'python -c CODE' does")
