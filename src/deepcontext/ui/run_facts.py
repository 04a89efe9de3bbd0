"""Facts about a run in words, for the page and for `deepcontext explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.profiler.model.run_info import ALL_RANKS
from deepcontext.profiler.summaries.steps import step_times
from deepcontext.ui.format import format_bytes, format_count, format_ns, format_share

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.run_info import RunInfo


def run_facts(profile: Profile) -> dict[str, str]:
    """Return the known facts by name, in the order of importance."""
    run = profile.run
    versions = ", ".join(f"{name} {version}" for name, version in sorted(run.frameworks.items()))
    cpu_ns = run.cpu_user_ns + run.cpu_system_ns
    share = cpu_ns / run.wall_ns if run.wall_ns else None
    steps = step_times(profile)
    facts = {
        "command": " ".join(run.command),
        "folder": run.cwd,
        "ended by": run.exit_reason,
        "elapsed time": format_ns(run.wall_ns),
        "CPU time": f"{format_ns(cpu_ns)} ({format_share(share)} of elapsed)" if cpu_ns else "",
        "steps": format_count(run.steps) if run.steps else "",
        "time of a step": "" if steps is None else format_ns(steps.mean),
        "peak memory": format_bytes(run.peak_rss_bytes) if run.peak_rss_bytes else "",
        "python": run.python,
        "frameworks": versions,
        "machine": run.hostname,
        "platform": run.platform,
        "processor": f"{run.cpu_model}, {run.cpu_count} CPUs" if run.cpu_model else "",
        "process": str(run.pid) if run.pid else "",
        "rank": _rank(run),
        "nodes": format_count(len(profile.tree)),
        "frames": format_count(len(profile.frames)),
        **{f"option {name}": value for name, value in sorted(run.options.items())},
    }
    return {name: value for name, value in facts.items() if value}


def _rank(run: RunInfo) -> str:
    if run.rank == ALL_RANKS:
        return f"{run.ranks} ranks; times and memory are sums over them"
    return f"{run.rank} of {run.ranks}" if run.ranks else ""
