"""Starts one child in a given way for each end, and prints how each ended: `starts.py WAY END...`.

The child uses torch (or jax) and then ends in the given way. Nothing here knows the profiler.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

HERE = str(Path(__file__).parent)
# In a child that is a program of its own.
CODE = (
    f"import sys; sys.path.append({HERE!r}); import starts; starts.use({{!r}}); starts.end({{!r}})"
)
FRAMEWORK = "torch"


def use(framework: str) -> None:
    """Use the framework, long enough for a snapshot of a profiler, which would write one by now."""
    if framework == "jax":
        import jax

        jax.jit(lambda x: x + 1)(1.0).block_until_ready()
    else:
        import torch

        torch.ones(8).sum()
    time.sleep(0.7)


def end(way: str) -> None:
    if way == "exit":
        sys.exit(3)
    if way == "exception":
        raise KeyError("planted")
    if way == "_exit":
        os._exit(4)
    if way == "abort":
        os.abort()
    if way in {"SIGTERM", "SIGKILL"}:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), getattr(signal, way))
        time.sleep(600)


def work(way: str) -> int:
    use("torch")
    end(way)
    return 7


def code(way: str, framework: str = FRAMEWORK) -> str:
    return CODE.format(framework, way)


def python(way: str, *flags: str, framework: str = FRAMEWORK) -> list[str]:
    return [sys.executable, *flags, "-c", code(way, framework)]


# -- programs of their own


def run_list(way: str) -> object:
    return subprocess.run(python(way), check=False).returncode


def run_shell(way: str) -> object:
    return subprocess.run(
        f'"{sys.executable}" -c "{code(way)}"', shell=True, check=False
    ).returncode


def run_shell_elsewhere(way: str) -> object:
    script = f'cd / && "{sys.executable}" -c "{code(way)}"; exit $?'
    return subprocess.run(["sh", "-c", script], check=False).returncode


def run_through_env(way: str) -> object:
    return subprocess.run(["env", "MORE=1", "nice", *python(way)], check=False).returncode


def run_larger_environment(way: str) -> object:
    return subprocess.run(python(way), env={**os.environ, "MORE": "1"}, check=False).returncode


def run_longer_pythonpath(way: str) -> object:
    path = os.pathsep.join(filter(None, ["/nonexistent", os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(python(way), env=environment, check=False).returncode


def run_other_pythonpath(way: str) -> object:
    environment = {**os.environ, "PYTHONPATH": "/nonexistent"}
    return subprocess.run(python(way), env=environment, check=False).returncode


def run_empty_environment(way: str) -> object:
    return subprocess.run(python(way), env={}, check=False).returncode


def run_isolated(way: str) -> object:
    return subprocess.run(python(way, "-I"), check=False).returncode


def run_without_variables(way: str) -> object:
    return subprocess.run(python(way, "-BE"), check=False).returncode


def run_without_site(way: str) -> object:
    folders = [entry for entry in sys.path if "site-packages" in entry]
    command = [sys.executable, "-S", "-c", f"import sys; sys.path += {folders}; {code(way)}"]
    return subprocess.run(command, check=False).returncode


def run_optimized(way: str) -> object:
    return subprocess.run(python(way, "-O", "-X", "utf8"), check=False).returncode


def run_standard_input(way: str) -> object:
    return subprocess.run([sys.executable, "-"], input=code(way), text=True, check=False).returncode


def run_module(way: str) -> object:
    Path("planted_module.py").write_text(code(way), encoding="utf-8")
    return subprocess.run([sys.executable, "-m", "planted_module"], check=False).returncode


def run_script_with_shebang(way: str) -> object:
    script = Path("planted_script")
    script.write_text(f"#!{sys.executable}\n{code(way)}\n", encoding="utf-8")
    script.chmod(0o755)
    return subprocess.run(["./planted_script"], check=False).returncode


def run_jax(way: str) -> object:
    return subprocess.run(python(way, framework="jax"), check=False).returncode


def run_asyncio(way: str) -> object:
    async def run() -> int:
        child = await asyncio.create_subprocess_exec(*python(way))
        return await child.wait()

    return asyncio.run(run())


def run_posix_spawn(way: str) -> object:
    command = python(way)
    return waited(os.posix_spawn(command[0], command, os.environ))


def run_spawnv(way: str) -> object:
    command = python(way)
    return os.spawnv(os.P_WAIT, command[0], command)


def run_system(way: str) -> object:
    return os.system(f'"{sys.executable}" -c "{code(way)}"')


def run_fork_and_exec(way: str) -> object:
    pid = os.fork()
    if pid == 0:
        os.execv(sys.executable, python(way))
    return waited(pid)


def run_grandchild(way: str) -> object:
    middle = f"import subprocess, sys; sys.exit(subprocess.run({python(way)!r}).returncode % 256)"
    return subprocess.run([sys.executable, "-c", middle], check=False).returncode


def run_daemon(way: str) -> object:
    """Fork twice, as daemons do, and run a program; its end is known by its end of a pipe."""
    reads, writes = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.dup2(writes, writes + 100)  # the copy is inherited
            os.execv(sys.executable, python(way))
        os._exit(0)
    os.close(writes)
    os.wait()
    return os.read(reads, 1)


def run_torchrun(way: str) -> object:
    Path("planted_rank.py").write_text(code(way), encoding="utf-8")
    options = ["--standalone", "--nproc-per-node", "1", "planted_rank.py"]
    command = [sys.executable, "-m", "torch.distributed.run", *options]
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode


# -- forks


def fork_bare(way: str) -> object:
    pid = os.fork()
    if pid == 0:
        use("torch")
        if way in {"return", "exit", "exception"}:
            os._exit(3)
        end(way)
    return waited(pid)


def fork_with_terminal(way: str) -> object:
    pid, terminal = os.forkpty()
    if pid == 0:
        use("torch")
        if way in {"return", "exit", "exception"}:
            os._exit(3)
        end(way)
    status = waited(pid)
    os.close(terminal)
    return status


def process(method: str, *, daemon: bool = False) -> Callable[[str], object]:
    def start(way: str) -> object:
        context: Any = multiprocessing.get_context(method)
        child = context.Process(target=work, args=(way,), daemon=daemon)
        child.start()
        child.join()
        return child.exitcode

    return start


def executor(method: str) -> Callable[[str], object]:
    def start(way: str) -> object:
        with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
            return outcome(lambda: pool.submit(work, way).result())

    return start


def pool(method: str) -> Callable[[str], object]:
    """A worker of a pool that dies is replaced, and its task is lost: it may only return or raise."""

    def start(way: str) -> object:
        with multiprocessing.get_context(method).Pool(1) as workers:
            kept = way if way in {"return", "exception"} else "return"
            return outcome(lambda: workers.apply(work, (kept,)))

    return start


class Samples:
    """A dataset whose worker ends."""

    def __init__(self, way: str) -> None:
        self.way = way

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> int:
        return work(self.way)


def loader(method: str) -> Callable[[str], object]:
    def start(way: str) -> object:
        from torch.utils.data import DataLoader

        batches = DataLoader(Samples(way), num_workers=1, multiprocessing_context=method)
        return outcome(lambda: [int(batch) for batch in batches])

    return start


def spawned_ranks(way: str) -> object:
    import torch.multiprocessing

    return outcome(lambda: torch.multiprocessing.spawn(rank, (way,), nprocs=1))


def rank(number: int, way: str) -> None:
    work(way)


# -- ends


def waited(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def outcome(call: Callable[[], object]) -> object:
    try:
        return call()
    except (Exception, SystemExit) as error:  # noqa: BLE001  its name is the answer
        return type(error).__name__


RECORDED: dict[str, Callable[[str], object]] = {
    "subprocess": run_list,
    "shell": run_shell,
    "shell in another folder": run_shell_elsewhere,
    "through env and nice": run_through_env,
    "larger environment": run_larger_environment,
    "longer PYTHONPATH": run_longer_pythonpath,
    "optimized": run_optimized,
    "standard input": run_standard_input,
    "module": run_module,
    "script with a shebang": run_script_with_shebang,
    "jax": run_jax,
    "asyncio": run_asyncio,
    "posix_spawn": run_posix_spawn,
    "spawnv": run_spawnv,
    "system": run_system,
    "fork and exec": run_fork_and_exec,
    "grandchild": run_grandchild,
    "daemon": run_daemon,
    "torchrun": run_torchrun,
    "process by fork": process("fork"),
    "process by spawn": process("spawn"),
    "process by forkserver": process("forkserver"),
    "daemonic process": process("fork", daemon=True),
    "executor by fork": executor("fork"),
    "executor by spawn": executor("spawn"),
    "executor by forkserver": executor("forkserver"),
    "pool by fork": pool("fork"),
    "pool by spawn": pool("spawn"),
    "loader by fork": loader("fork"),
    "loader by spawn": loader("spawn"),
    "loader by forkserver": loader("forkserver"),
    "torch.multiprocessing.spawn": spawned_ranks,
}
# No variable of the environment reaches these children, or they are copies that may never end.
NOT_RECORDED: dict[str, Callable[[str], object]] = {
    "other PYTHONPATH": run_other_pythonpath,
    "empty environment": run_empty_environment,
    "isolated": run_isolated,
    "without variables": run_without_variables,
    "without site": run_without_site,
    "bare fork": fork_bare,
    "fork with a terminal": fork_with_terminal,
}
ENDS = ("return", "exit", "exception", "_exit", "SIGTERM", "SIGKILL", "abort")


def main() -> None:
    way, *ends = sys.argv[1:]
    if "fork" in way or "loader" in way:
        import torch  # a forked child is recorded if its parent uses the framework

        assert torch
    for each in ends:
        found = (RECORDED | NOT_RECORDED)[way](each)
        print(f"{each}: {found!r}", flush=True)
        # An exception of a worker is in a cycle with the iterator of its DataLoader. If the next child
        # collects it, torch complains there, and when that is depends on every allocation so far.
        gc.collect()


if __name__ == "__main__":
    main()
