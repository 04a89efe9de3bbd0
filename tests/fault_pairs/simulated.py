"""Profile a program on a simulated GPU.

usage: simulated.py nvidia|amd [--stalls] PROGRAM

Writes the profile beside the program.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import torch

import deepcontext

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))
import kit


def main() -> None:
    name, *options, program = sys.argv[1:]
    torch.set_num_threads(1)
    vendor = next(each for each in kit.VENDORS if each.name == name)
    fakes = kit.built()
    device = kit.FakeGpu(fakes, vendor)
    device.use()
    os.environ["DEEPCONTEXT_SIMULATED_GPU"] = str(fakes / vendor.profiler)
    os.environ["DEEPCONTEXT_GPU_STALLS"] = "may-hang"  # the fake does not
    device.reset()
    deepcontext.start(Path(program).with_suffix(".dcprof"), stalls="--stalls" in options)
    runpy.run_path(program, run_name="__main__")
    device.deliver()
    deepcontext.stop()


if __name__ == "__main__":
    main()
