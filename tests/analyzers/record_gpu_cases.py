"""Profile programs of `cases/gpu_*.py` on a simulated GPU.

usage: record_gpu_cases.py FOLDER FAKES cupti|rocprofiler NAME...

Writes NAME.dcprof. One process per vendor, because a process can load the tools of one vendor only.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import torch

import deepcontext

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "fakes"))
import kit  # noqa: E402  a plain file of the tests


def main() -> None:
    folder, fakes, interface, *names = sys.argv[1:]
    torch.set_num_threads(1)
    vendor = next(each for each in kit.VENDORS if each.interface == interface)
    device = kit.FakeGpu(Path(fakes), vendor)
    device.use()
    os.environ["DEEPCONTEXT_SIMULATED_GPU"] = str(Path(fakes) / vendor.profiler)
    os.environ["DEEPCONTEXT_GPU_STALLS"] = "may-hang"  # the fake does not
    for name in names:
        device.reset()
        output = Path(folder) / f"{name}.dcprof"
        deepcontext.start(output, stalls=name.startswith("gpu_stall_"))
        runpy.run_path(str(HERE / "cases" / f"{name}.py"), run_name="__main__")
        device.deliver()
        deepcontext.stop()


if __name__ == "__main__":
    main()
