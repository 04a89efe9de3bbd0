"""Programs that only start other programs: torchrun and launchers like it.

A launcher imports torch, but its time is spent waiting. Launchers are not recorded; the processes that
they start are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.recording.launch import python_words

if TYPE_CHECKING:
    from collections.abc import Sequence

# Names of scripts in the bin folder of a Python environment.
_SCRIPTS: Final = frozenset({
    *("torchrun", "accelerate", "accelerate-launch", "deepspeed", "fabric"),
    *("horovodrun", "composer", "colossalai"),
})
_MODULES: Final = frozenset({
    *("torch.distributed.run", "torch.distributed.launch", "torch.distributed.launcher.api"),
    *("accelerate.commands.launch", "accelerate.commands.accelerate_cli"),
    *("deepspeed.launcher.runner", "deepspeed.launcher.launch"),
    *("lightning.fabric.cli", "lightning_fabric.cli"),
    *("horovod.runner.launch", "composer.cli.launcher", "colossalai.cli"),
})


def is_launcher(words: Sequence[str]) -> bool:
    """Return whether the words after a Python interpreter start a launcher."""
    _, program = python_words.split(words)
    match program:
        case ["-m", module, *_]:
            return module in _MODULES
        case ["-c", *_] | []:
            return False
    return program[0].rpartition("/")[2] in _SCRIPTS
