"""The page's engine (`web/src/engine`), held to a naive reference (`paths.py`) and to the summaries.

The same paths, the same numbers to the nanosecond; hand-made cases say what each switch means.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections import Counter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

import numpy as np
import pytest

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, Aggregation, MetricDescriptor
from deepcontext.profiler.format.user_code import is_user_file
from deepcontext.profiler.model.job.artifact import profile_of
from deepcontext.profiler.model.job.bounds import largest_paths
from deepcontext.profiler.model.job.joining import join
from deepcontext.profiler.model.job.part import part_of
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.metric_table import MetricTable
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.lines import by_line, by_python_line
from deepcontext.profiler.summaries.tables import TABLES
from deepcontext.profiler.views.layers import OPTIONAL_LAYERS
from deepcontext.ui.measures import measure_named, measures
from deepcontext.ui.web.open_profiles import OpenProfile, OpenProfiles
from tests.synthetic import random_profile
from tests.ui.conftest import gpu_profile
from tests.ui.paths import (
    FINER,
    PIVOTS,
    Paths,
    answered,
    backwards,
    identity,
    node_answer,
    outermost,
    threshold_of,
    with_descendants,
)
from tests.ui.test_web_ranks import joined, made_ranks

if TYPE_CHECKING:
    from pathlib import Path

    from deepcontext.profiler.model.grouping import Spread
    from tests.ui.conftest import Engine
    from tests.ui.engine import Question
    from tests.ui.paths import Function

METRIC: Final = "host_time_ns"
PX: Final = 1536
# What decides which nodes a tree shows; the rest of a question is about their costs.
SWITCHES: Final = ("hidden", "library", "lines", "phase", "pivot", "edits")
EDITS: Final = ("focus", "root", "hide", "collapse", "drop", "open")
MOST_FOUND: Final = 1_000
MOST_ROWS: Final = 3_000
PHASES: Final = [phase.label for phase in Phase if phase is not Phase.NONE]


def compare(engine: Engine, profiles: OpenProfiles, questions: list[Question]) -> list[Any]:
    """Ask the engine, and hold its answers to the naive reference; return the answers."""
    answers = engine(profiles, questions)
    for (what, query), answer in zip(questions, answers, strict=True):
        try:
            CHECKS[what](profiles, query, answer)
        except QueryError as refusal:
            assert answer == {"error": str(refusal)}, (what, query)  # noqa: PT017  both refuse
        except AssertionError as error:
            error.add_note(f"{what} {query}")
            raise
    return answers


def opened_view(profiles: OpenProfiles, query: dict[str, str], file: int | None = None) -> Paths:
    index = int(query.get("file", "0")) if file is None else file
    view = copy.copy(placed(profiles, index, tuple(query.get(name, "") for name in SWITCHES)))
    view.query = query
    return view


@functools.lru_cache(maxsize=8)
def placed(profiles: OpenProfiles, index: int, switches: tuple[str, ...]) -> Paths:
    """Return the paths of a tree, which many questions ask about."""
    return Paths(profiles.get(index).profile, dict(zip(SWITCHES, switches, strict=True)))


def check_flame(profiles: OpenProfiles, query: dict[str, str], answer: dict[str, Any]) -> None:
    kind = query.get("kind", "top_down")
    if kind == "difference":
        check_difference(profiles, query, answer)
        return
    view = opened_view(profiles, query)
    function = view.functions[int(query.get("function", "0"))]
    if kind in {"callers", "callees"} and function == view.at[0]:
        return  # the root has none
    if kind in {"callers", "callees"} and all(function not in path for path in view.first):
        assert "hidden" in answer["error"]
        return
    if kind in {"bottom_up", "callers"}:
        check_backwards(view, function if kind == "callers" else None, answer)
        return
    if kind == "callees":
        edits = f"{query.get('edits', '')},focus:{query['function']}"
        view = opened_view(profiles, {**query, "edits": edits.strip(",")})
    check_forwards(view, query, answer)


def check_forwards(view: Paths, query: dict[str, str], answer: dict[str, Any]) -> None:
    top = view.shown_at(int(query["root"])) if "root" in query else ()
    if top is None:
        assert "no node" in answer["error"] or "is not shown" in answer["error"]
        return
    costs = view.exclusive(query.get("metric", METRIC))
    inclusive = with_descendants(costs)
    below = {path: value for path, value in inclusive.items() if path[: len(top)] == top}
    found = dict(answered(answer))
    assert len(found) == len(answer["nodes"]["depth"])
    threshold = threshold_of(list(below.values()), inclusive[top], int(query.get("px", PX)))
    wanted = {path for path, value in below.items() if value >= threshold} | {top}
    assert set(found) == wanted | {top[:length] for length in range(len(top))}
    assert answer["threshold"] == threshold
    assert answer["above"] == len(top)
    assert answer["total"] == inclusive[()]
    assert answer["left_out"] == max(sum(v > 0 for v in below.values()) - len(wanted), 0)
    children: dict[Any, list[int]] = {}
    for path in found:
        children.setdefault(path[:-1], []).append(view.first[path])
    assert all(places == sorted(places) for places in children.values())
    for path, node in found.items():
        assert node["value"] == inclusive[path]
        assert node["exclusive"] == costs[path]
        assert node["source"] == view.first[path]
        assert node["phase"] == view.phase_of(path)
        if view.calls is not None:
            check_calls(view.calls.get(path), node)


def check_calls(expected: Spread | None, node: dict[str, Any]) -> None:
    if expected is None:
        assert (node["calls"], node["mean"], node["deviation"]) == (0, -1, -1)
        return
    assert node["calls"] == expected.count
    assert node["mean"] == pytest.approx(expected.mean, abs=1)
    wanted = -1 if expected.sd is None else expected.sd
    assert node["deviation"] == pytest.approx(wanted, rel=1e-9, abs=1)
    for name in ("minimum", "maximum"):
        if name in node:
            assert node[name] == getattr(expected, name)


def check_backwards(view: Paths, function: Any, answer: dict[str, Any]) -> None:
    costs = view.exclusive(view.query.get("metric", METRIC))
    # Callers without a cost count as left out.
    every = Counter(dict.fromkeys(view.first, 0))
    every.update(costs)
    start = +costs if function is None else outermost(every, function)
    start.pop((), None)
    px = int(view.query.get("px", PX))
    whole = sum(costs.values()) if function is None else sum(start.values())
    least = max(whole // (2 * FINER * px), 1)
    in_order = sorted(start, key=lambda path: [view.first[path[: n + 1]] for n in range(len(path))])
    chains, example, smaller = backwards({path: start[path] for path in in_order}, least)
    threshold = threshold_of(list(chains.values()), chains[()], px * FINER)
    found = dict(answered(answer))
    wanted = {chain for chain, value in chains.items() if value >= threshold} | {()}
    assert set(found) == wanted
    assert answer["total"] == sum(start.values())
    assert answer["threshold"] == max(threshold, least if smaller else 0)
    positive = sum(value > 0 for value in chains.values())
    assert answer["left_out"] == max(positive - len(wanted), 0) + smaller
    of_callers: Counter[Any] = Counter()
    for chain, value in chains.items():
        of_callers[chain[:-1]] += value if chain else 0
    for chain, node in found.items():
        assert node["value"] == chains[chain]
        # Only a chain that ends at a thread has no further caller; elsewhere callers are left out.
        is_end = bool(chain) and len(example[chain]) == len(chain)
        assert node["exclusive"] == (chains[chain] - of_callers[chain] if is_end else 0)


def check_difference(profiles: OpenProfiles, query: dict[str, str], answer: dict[str, Any]) -> None:
    files = [int(each) for each in query.get("files", "0,1").split(",")]
    measure_named(profiles.get(files[0]).profile, query.get("metric", METRIC))
    views = [opened_view(profiles, query, file) for file in files]
    folders = [view.profile.run.cwd for view in views]
    metric = query.get("metric", METRIC)
    sides = []
    for view, folder in zip(views, folders, strict=True):
        costs: Counter[Any] = Counter()
        for path, value in view.exclusive(metric).items():
            costs[tuple(identity(each, folder) for each in path)] += value
        sides.append(costs)
    totals = [sum(costs.values()) for costs in sides]
    assert answer["totals"] == totals
    if query.get("normalize") == "1":
        for costs, total in zip(sides[1:], totals[1:], strict=True):
            for path in costs if total else ():
                costs[path] = round(costs[path] * (totals[0] / total))
    largest = Counter({path: max(each[path] for each in sides) for path in set().union(*sides)})
    width = with_descendants(largest)
    threshold = threshold_of(list(width.values()), width[()], int(query.get("px", PX)) * FINER)
    assert answer["threshold"] == threshold
    inclusive = [with_descendants(costs) for costs in sides]
    has = [
        {tuple(identity(each, folder) for each in path) for path in view.first}
        for view, folder in zip(views, folders, strict=True)
    ]
    found = {}
    for path, node in answered(answer):
        (same,) = {tuple(identity(each, folder) for each in path) for folder in set(folders)}
        found[same] = node
    assert set(found) == {path for path, value in width.items() if value >= threshold} | {()}
    for path, node in found.items():
        assert node["value"] == width[path]
        assert node["exclusive"] == largest[path]
        expected = [
            values[path] if path in known else None
            for values, known in zip(inclusive, has, strict=True)
        ]
        assert node["sides"] == expected


def check_node(profiles: OpenProfiles, query: dict[str, str], answer: dict[str, Any]) -> None:
    if "function" in query:
        check_function(profiles, query, answer)
        return
    view = opened_view(profiles, query)
    path = view.shown_at(int(query["source"]))
    if path is None:
        assert "no node" in answer["error"] or "is not shown" in answer["error"]
        return
    assert _rounded(answer) == _rounded(node_answer(view, path))


def function_costs(view: Paths, metric: str) -> tuple[Counter[Function], Counter[Function]]:
    """Return inclusive costs of functions, in which nested calls count once, and exclusive costs."""
    inclusive: Counter[Function] = Counter()
    exclusive: Counter[Function] = Counter()
    for path, value in view.exclusive(metric).items():
        inclusive.update(dict.fromkeys(path, value))
        exclusive.update({path[-1]: value} if path else {})
    return inclusive, exclusive


def function_calls(view: Paths) -> Counter[Function]:
    calls: Counter[Function] = Counter()
    for path, spread in (view.calls or {}).items():
        if path:
            calls[path[-1]] += spread.count
    return calls


def check_function(profiles: OpenProfiles, query: dict[str, str], answer: dict[str, Any]) -> None:
    view = opened_view(profiles, query)
    function = view.functions[int(query["function"])]
    if function == view.at[0]:
        return  # the root is no function
    places = [path for path in view.first if path and path[-1] == function]
    if not places:
        assert "is hidden" in answer["error"]
        return
    for each in answer["values"]:
        inclusive, exclusive = function_costs(view, each["measure"]["key"])
        assert (each["inclusive"], each["exclusive"]) == (inclusive[function], exclusive[function])
    calls = answer["calls"]
    assert (calls["count"] if calls else 0) == function_calls(view)[function]
    assert answer["contexts"] == sum(len(view.members.get(path, ())) for path in places)
    if len(places) == 1:
        assert _rounded(answer) == _rounded(node_answer(view, places[0]))


def check_functions(profiles: OpenProfiles, query: dict[str, str], answer: dict[str, Any]) -> None:
    """The rows of all functions have the figures of each."""
    view = opened_view(profiles, query)
    inclusive, exclusive = function_costs(view, query.get("metric", METRIC))
    calls = function_calls(view)
    labels = set(view.labels)
    places = Counter(path[-1] for path in view.first if path and path[-1] not in labels)
    expected = {
        view.first_frame[each]: (inclusive[each], exclusive[each], contexts, calls[each])
        for each, contexts in places.items()
        if inclusive[each] or exclusive[each]
    }
    found = {
        row["id"]: (
            *(row[name] for name in ("inclusive", "exclusive", "contexts")),
            row["calls"]["count"] if row["calls"] else 0,
        )
        for row in answer["rows"]
    }
    assert found == expected
    own = [row["exclusive"] for row in answer["rows"]]
    assert own == sorted(own, reverse=True)


def check_find(profiles: OpenProfiles, query: dict[str, str], answer: dict[str, Any]) -> None:
    view = opened_view(profiles, query)
    wanted = query["text"].casefold()
    frames = [view.profile.frames[index] for index in range(len(view.functions))]
    matching = {
        function
        for function, frame in zip(view.functions, frames, strict=True)
        if wanted and (wanted in frame.name.casefold() or wanted in frame.file.casefold())
    }
    inclusive = with_descendants(view.exclusive(query.get("metric", METRIC)))
    found = {path: v for path, v in inclusive.items() if path and v > 0 and path[-1] in matching}
    top = [path for path in found if not matching.intersection(path[:-1])]
    assert answer["count"] == len(found)
    assert answer["value"] == sum(found[path] for path in top)
    assert answer["total"] == inclusive[()]
    shown = {(each["source"], each["value"]) for each in answer["nodes"]}
    assert shown <= {(view.first[path], value) for path, value in found.items()}
    assert len(shown) == min(len(found), MOST_FOUND)


def check_table(profiles: OpenProfiles, query: dict[str, str], answer: dict[str, Any]) -> None:
    """Compare a table with the summary that the report prints."""
    profile, metric = profiles.get(0).profile, query.get("metric", METRIC)
    measure_named(profile, metric)
    by, text = query.get("by", "operator"), query.get("text", "").casefold()
    if metric.endswith(".count"):
        assert "tables show totals of metrics" in answer["error"]
        return
    groups = TABLES[by].make(profile, metric, 0)
    rows = [
        each
        for each in groups.rows
        if text in each.name.casefold() or text in f"{each.file}:{each.line}".casefold()
    ]
    assert answer["total"] == groups.total
    assert answer["match_count"] == len(rows)
    for row, group in zip(answer["rows"], rows[:MOST_ROWS], strict=True):
        for name in ("name", "file", "line", "inclusive", "exclusive", "contexts"):
            assert row[name] == getattr(group, name)
        assert row["phases"] == list(group.phases)
        calls = group.calls and dataclasses.asdict(group.calls)
        assert (row["calls"] and row["calls"]["count"]) == (calls and calls["count"])
        frame = profile.frames[row["id"]]
        at = (frame.file, frame.line) if by == "line" else frame.name
        assert at == ((group.file, group.line) if by == "line" else group.name)


def costs_of_lines(profile: Profile, metric: str) -> dict[str, list[dict[str, Any]]]:
    """Return the costs of the user's lines, with libraries, and of the libraries' lines, by file."""
    user = by_line(profile, metric, 0).rows
    library = [row for row in by_python_line(profile, metric).rows if not is_user_file(row.file)]
    found: dict[str, list[dict[str, Any]]] = {}
    for row in (*user, *library):
        cost = {"line": row.line, "function": row.name}
        cost |= {"inclusive": row.inclusive, "exclusive": row.exclusive}
        found.setdefault(row.file, []).append(cost)
    return found


def check_files(profiles: OpenProfiles, query: dict[str, str], answer: dict[str, Any]) -> None:
    measure_named(profiles.get(0).profile, query["metric"])
    if query["metric"].endswith(".count"):
        assert "lines show totals of metrics" in answer["error"]
        return
    found = costs_of_lines(profiles.get(0).profile, query["metric"])
    sums = {file: sum(each["exclusive"] for each in costs) for file, costs in found.items()}
    assert {row["file"]: row["exclusive"] for row in answer["files"]} == sums
    keys = [(not is_user_file(row["file"]), -row["exclusive"]) for row in answer["files"]]
    assert keys == sorted(keys)


def check_source(profiles: OpenProfiles, query: dict[str, str], answer: dict[str, Any]) -> None:
    profile = profiles.get(0).profile
    measure_named(profile, METRIC)
    found = costs_of_lines(profile, METRIC)
    if query["path"] not in found:
        assert "error" in answer
        return
    costs = sorted(found[query["path"]], key=lambda cost: cost["line"])
    assert answer["costs"] == costs


CHECKS: Final = {
    "flame": check_flame,
    "node": check_node,
    "functions": check_functions,
    "find": check_find,
    "table": check_table,
    "files": check_files,
    "source": check_source,
}


def _rounded(value: Any) -> Any:
    """Return JSON with floating-point numbers that do not depend on the order of a sum."""
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    if not isinstance(value, float) or value.is_integer():
        return value
    return float(f"{value:.12g}")


def switches(random: np.random.Generator, profile: Profile) -> dict[str, str]:
    """Return random positions of all switches of a tree."""
    some = random.random()
    hidden = [layer.label for layer in OPTIONAL_LAYERS if random.random() < some / 2]
    targets = {"root": len(profile.tree)}
    edits = [
        f"{kind}:{random.integers(targets.get(kind, len(profile.frames)))}"
        for kind in random.choice(EDITS, random.integers(0, 3))
    ]
    query = {
        "metric": random.choice([each.key for each in measures(profile)]),
        "hidden": ",".join(hidden),
        "library": random.choice(["", "1"]),
        "lines": random.choice(["", "1"]),
        "phase": random.choice(["", *PHASES]),
        "pivot": random.choice(PIVOTS),
        "edits": ",".join(edits),
        "px": str(random.choice([3, 100, 1536])),
    }
    return {name: str(value) for name, value in query.items() if value}


def random_questions(
    random: np.random.Generator, profiles: OpenProfiles, count: int
) -> list[Question]:
    profile = profiles.get(0).profile
    questions: list[Question] = []
    for _ in range(count):
        tree = switches(random, profile)
        node = str(random.integers(len(profile.tree)))
        # The copy of a node in a tree that is split, or a refusal.
        label = random.integers(len(Phase) + 2)
        labelled = str(label * len(profile.tree) + random.integers(len(profile.tree)))
        frame = str(random.integers(len(profile.frames)))
        text = profile.frames.strings[int(random.integers(len(profile.frames.strings)))][-4:]
        questions += [
            ("flame", tree),
            ("flame", {**tree, "root": node}),
            ("flame", {**tree, "pivot": "phase", "root": labelled}),
            ("flame", {**tree, "kind": "bottom_up"}),
            ("flame", {**tree, "kind": "callers", "function": frame}),
            ("flame", {**tree, "kind": "callees", "function": frame}),
            ("flame", {**tree, **compared(random, len(profiles))}),
            ("node", {**tree, "source": node}),
            ("node", {**tree, "source": labelled}),
            ("node", {**tree, "function": frame}),
            ("functions", tree),
            ("find", {**tree, "text": text}),
        ]
    return questions


def compared(random: np.random.Generator, count: int) -> dict[str, str]:
    """Return a comparison of some profiles, or of the first two, in any order."""
    query = {"kind": "difference", "normalize": str(random.integers(2))}
    files = random.permutation(count)[: int(random.integers(2, count + 1))].tolist()
    return {**query, "files": ",".join(map(str, files))} if random.random() < 0.7 else query


def other_questions(profile: Profile) -> list[Question]:
    """Return every question about tables and lines."""
    questions: list[Question] = []
    for measure in measures(profile):
        metric = {"metric": measure.key}
        questions += [("table", {**metric, "by": by}) for by in TABLES]
        questions += [("table", {**metric, "text": "op_1"}), ("files", metric)]
    files = {profile.frames[index].file for index in range(len(profile.frames))}
    questions += [("source", {"path": file}) for file in sorted(files)]
    return questions


def varied(profile: Profile, seed: int) -> Profile:
    """Return a random profile with ranks, phases, libraries, kernels and metrics of each kind."""
    random = np.random.default_rng(seed)
    frames = profile.frames
    strings = [
        text.replace("/home/me", "/usr/lib/python3.11/site-packages/torch")
        if text.endswith(("3.py", "4.py"))
        else text
        for text in frames.strings
    ]
    kind = frames.kind.copy()
    kind[kind == FrameKind.THREAD] = random.choice([FrameKind.THREAD, FrameKind.RANK])
    operators = np.flatnonzero(kind == FrameKind.OPERATOR)
    others = [FrameKind.KERNEL, FrameKind.NATIVE, FrameKind.HLO, FrameKind.GPU_API]
    changed = random.choice(operators, len(operators) // 3, replace=False)
    kind[changed] = random.choice(others, len(changed))
    nodes = np.sort(random.choice(len(profile.tree), max(len(profile.tree) // 4, 1), replace=False))
    metrics = dict(profile.metrics)
    for name, unit, aggregation in (
        ("alloc_bytes", "bytes", Aggregation.SUM),
        ("peak_bytes", "bytes", Aggregation.MAX),
        ("registers", "count", Aggregation.PROPERTY),
    ):
        total = random.integers(1, 2**35, len(nodes))
        count = random.integers(1, 9, len(nodes)).astype(np.uint64)
        described = MetricDescriptor(name, unit, aggregation, f"{name} of a random profile")
        # Neither extreme is the total: a maximum must not be taken for the sum of its events.
        columns = (nodes.astype(np.uint32), count, total, total // 3, total // 2)
        metrics[name] = MetricRows(described, *columns)
    if random.random() < 0.3:
        del metrics[CALL_DURATION_NS.name]
    return Profile(
        dataclasses.replace(frames, kind=kind, strings=strings),
        profile.tree,
        MetricTable(metrics),
        profile.run,
        profile.trust,
    )


def opened(*profiles: Profile) -> OpenProfiles:
    return OpenProfiles([
        OpenProfile.of_memory(profile, f"profile {index}") for index, profile in enumerate(profiles)
    ])


@pytest.mark.long
def test_random_trees_under_random_switches(engine: Engine) -> None:
    nodes = lacking = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        sizes = random.integers(2, 900, 2 + seed % 3)
        several = [
            varied(random_profile(int(size), seed=seed, depth=int(random.integers(2, 30))), seed)
            for size in sizes
        ]
        profiles = opened(*several)
        questions = [*random_questions(random, profiles, 2), *other_questions(several[0])]
        answers = compare(engine, profiles, questions)
        trees = [each["nodes"] for each in answers if "functions" in each]
        nodes += sum(len(each["depth"]) for each in trees)
        lacking += sum(None in sides for each in trees for sides in each["sides"] if len(sides) > 2)
    assert nodes > 8_000  # not only refusals
    assert lacking > 400


@pytest.mark.long
def test_large_trees_are_cut_alike(engine: Engine) -> None:
    profile = varied(random_profile(12_000, depth=12), 1)
    others = [varied(random_profile(4_000, seed=seed, depth=12), 1) for seed in (1, 2)]
    profiles = opened(profile, *others)
    random = np.random.default_rng(7)
    answers = compare(engine, profiles, random_questions(random, profiles, 6))
    assert any(each.get("left_out") for each in answers)


def test_the_same_tree_of_other_profiles_is_another_answer(engine: Engine) -> None:
    profiles = opened(*(random_profile(500, seed=seed, depth=6) for seed in range(3)))
    files = ["0,1,2", "1,0,2", "2,0", "0,2", "0,1,2"]
    asked = [("flame", {"kind": "difference", "files": each}) for each in files]
    answers = compare(engine, profiles, asked)
    totals = [answer["totals"] for answer in answers]
    assert totals[0] == totals[4]
    assert totals[1] == [totals[0][1], totals[0][0], totals[0][2]]
    assert totals[2] == totals[3][::-1] == [totals[0][2], totals[0][0]]


@pytest.mark.parametrize("name", ["train", "empty", "troubled", "plain", "left", "spawned"])
def test_profiles_of_the_reports(engine: Engine, training_folder: Path, name: str) -> None:
    path = training_folder / f"{name}.dcprof"
    profiles = OpenProfiles.open([path, training_folder / "train.dcprof"])
    profile = profiles.get(0).profile
    random = np.random.default_rng(1)
    known = random_questions(random, profiles, 10) if measures(profile) else []
    answers = compare(engine, profiles, [*known, *other_questions(profile)])
    assert name == "empty" or any("functions" in each for each in answers)


def test_a_question_that_is_dropped_is_not_answered(engine: Engine) -> None:
    profiles = opened(random_profile(3_000))
    flame: tuple[str, dict[str, Any]] = ("flame", {})
    dropped = [*flame, "dropped"]
    answers = engine(profiles, [flame, dropped, dropped, flame])
    assert answers[1:3] == [None, None]
    assert answers[0] == answers[3]


def test_kernels_of_a_gpu(engine: Engine, make_profile: Any) -> None:
    profile = gpu_profile(make_profile, with_operator=True)
    profiles = opened(profile, profile)
    random = np.random.default_rng(2)
    every = [
        ("node", {"source": str(node), "metric": measures(profile)[0].key})
        for node in range(len(profile.tree))
    ]
    compare(engine, profiles, [*random_questions(random, profiles, 10), *every])


REFUSALS: Final = {
    "flame?root=99999": "no node 99999",
    "flame?root=-1": "'root' must be a whole number",
    "flame?root=99999999999999999999": "'root' must be a whole number",
    "flame?kind=sideways": "no view 'sideways'",
    "flame?kind=callers": "needs the number of a frame",
    "flame?kind=callers&function=99999": "no frame 99999",
    "flame?kind=difference": "no profile 1",
    "flame?metric=gpu": "no measure 'gpu'",
    "flame?metric=call_duration_ns": "no measure 'call_duration_ns'",
    "flame?hidden=paint": "no layer 'paint'",
    "flame?phase=lunar": "no phase 'lunar'",
    "flame?pivot=moon": "cannot split the tree by 'moon'",
    "flame?pivot=rank": "known: thread, none, phase",
    "flame?edits=hide:99999": "no frame 99999",
    "flame?edits=hide:": "cannot read the edit",
    "flame?edits=hide:-1": "cannot read the edit",
    "flame?edits=paint:1": "cannot read the edit",
    "node?source=99999": "no node 99999",
    "node?source=x": "'source' must be a whole number",
    "table?by=moon": "no table by 'moon'",
    "table?metric=call_duration_ns.count": "tables show totals",
    "source?path=/etc/passwd": "names no such source file",
}


def test_bad_questions_are_refused_with_the_reason(engine: Engine, training_folder: Path) -> None:
    profiles = OpenProfiles.open([training_folder / "train.dcprof"])
    asked = [each.partition("?") for each in REFUSALS]
    answers = engine(profiles, [(what, dict(parse_qsl(query))) for what, _, query in asked])
    said = [answer.get("error", "") for answer in answers]
    assert [
        (question, error)
        for (question, wanted), error in zip(REFUSALS.items(), said, strict=True)
        if wanted not in error
    ] == []


USER, LIBRARY = "/home/me/train.py", "/usr/lib/python3.11/site-packages/torch/nn/linear.py"
# root > thread > train:1 (> Linear 'net' > forward > mm 30 > MmBackward0 5), train:2 (> mm 7)
NAMES: Final = {"train": 2, "net": 3, "mm": 5, "second": 8}
MEANINGS: Final[dict[str, dict[str, int]]] = {
    "": {"MainThread/train/net": 35, "MainThread/train": 42, "MainThread/train/mm": 7},
    "lines=1": {"MainThread/train": 35, "MainThread/train/mm": 7},
    "library=1": {"MainThread/train/net/forward/mm": 35},
    "hidden=module,python": {"MainThread/mm": 42, "MainThread/mm/MmBackward0": 5, "MainThread": 42},
    "phase=backward": {"MainThread/train": 5},
    "pivot=phase": {
        "forward": 30,
        "backward": 5,
        "backward/train/net/mm/MmBackward0": 5,
        "optimizer/train/mm": 7,
    },
    "pivot=none": {"train": 42},
    "edits=hide:5": {"MainThread/train/net/MmBackward0": 5, "MainThread": 42},
    "edits=collapse:3": {"MainThread/train/net": 35, "MainThread/train/net/mm": 0},
    "edits=drop:3": {"MainThread/train": 7},
    "edits=focus:5": {"mm": 42, "mm/MmBackward0": 5, "MainThread": 0},
    "edits=root:3": {"net": 35, "MainThread": 0},
    "kind=bottom_up": {"mm": 37, "mm/net": 30, "mm/train": 7, "MmBackward0/mm/net/train": 5},
    "kind=callers&function=5": {"mm": 42, "mm/net": 35},
    "kind=callees&function=3": {"net": 35, "net/mm": 35},
}


@pytest.mark.parametrize("query", MEANINGS)
def test_what_each_switch_means(engine: Engine, make_profile: Any, query: str) -> None:
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.THREAD, "MainThread"),
        Frame(FrameKind.PYTHON, "train", USER, 1),
        Frame(FrameKind.MODULE, "net"),
        Frame(FrameKind.PYTHON, "forward", LIBRARY, 134),
        Frame(FrameKind.OPERATOR, "mm"),
        Frame(FrameKind.OPERATOR, "MmBackward0"),
        Frame(FrameKind.PYTHON, "train", USER, 2),
        Frame(FrameKind.OPERATOR, "mm"),
    ]
    phases = [Phase.NONE] * 5 + [Phase.FORWARD, Phase.BACKWARD, Phase.NONE, Phase.OPTIMIZER]
    profile = make_profile(
        [0, 0, 1, 2, 3, 4, 5, 1, 7], frames, phases=phases, host_time_ns={5: 30, 6: 5, 8: 7}
    )
    (answer,) = compare(engine, opened(profile), [("flame", dict(parse_qsl(query)))])
    values: Counter[str] = Counter()
    for path, node in answered(answer):
        values["/".join(function[1] for function in path)] += node["value"]
    expected = MEANINGS[query]
    if query == "lines=1":
        expected = expected | {"MainThread/train": 42}  # both lines
    assert {name: values[name] for name in expected} == expected


def test_the_same_path_in_another_folder_is_the_same_node(
    engine: Engine, make_profile: Any
) -> None:
    def program(folder: str, ns: int) -> Profile:
        frames = [
            Frame(FrameKind.ROOT, ""),
            Frame(FrameKind.THREAD, "MainThread"),
            Frame(FrameKind.PYTHON, "train", f"{folder}/train.py", 3),
            Frame(FrameKind.NATIVE, "gemm", f"{folder}/lib/libblas.so"),
        ]
        made: Profile = make_profile([0, 0, 1, 2], frames, host_time_ns={3: ns})
        return dataclasses.replace(made, run=dataclasses.replace(made.run, cwd=folder))

    profiles = opened(program("/home/a", 5), program("/tmp/b", 7))
    (answer,) = engine(profiles, [("flame", {"kind": "difference"})])
    assert answer["nodes"]["sides"] == [[5, 7]] * 4
    (scaled,) = engine(profiles, [("flame", {"kind": "difference", "normalize": "1"})])
    assert scaled["nodes"]["sides"] == [[5, 5]] * 4


def by_path(answer: dict[str, Any]) -> dict[tuple[Any, ...], int]:
    """Return the place of each node in an answer by its call path, without the root."""
    nodes, functions = answer["nodes"], answer["functions"]
    found: dict[tuple[Any, ...], int] = {}
    path: list[tuple[Any, ...]] = []
    for place, (depth, func) in enumerate(zip(nodes["depth"], nodes["function"], strict=True)):
        del path[depth:]
        path.append(tuple(functions[name][func] for name in ("kind", "name", "file", "line")))
        found[tuple(path[1:])] = place
    return found


def values_by_rank(
    engine: Engine, merged: Profile, ranks: list[Profile], query: dict[str, str]
) -> list[tuple[dict[str, Any], list[int]]]:
    """Return for each node what the engine knows of the ranks, and the values in their own profiles."""
    query = {"metric": "host_time_ns", "pivot": "none", "px": "16384", **query}
    files = [{**query, "file": str(number)} for number in range(len(ranks) + 1)]
    whole, *own = engine(
        opened(merged, *ranks),
        [("flame", {**files[0], "ranks": "1"}), *(("flame", each) for each in files[1:])],
    )
    nodes = whole["nodes"]
    asked = [
        ("rank_values", {**query, "ranks": "1", "source": str(each)}) for each in nodes["source"]
    ]
    found = [
        {"values": known["values"], "most": most, "rank": rank}
        for known, most, rank in zip(
            engine(opened(merged), asked), nodes["most"], nodes["most_rank"], strict=True
        )
    ]
    places = [by_path(each) for each in own]
    rows = []
    for path, place in by_path(whole).items():
        values = [
            answer["nodes"]["value"][of_rank[path]] if path in of_rank else 0
            for of_rank, answer in zip(places, own, strict=True)
        ]
        if sum(values) == whole["nodes"]["value"][place]:  # no rank's node was cut away
            rows.append((found[place], values))
    assert len(rows) > len(places[0]) / 2
    return rows


def test_values_of_joined_ranks_are_those_of_their_own_trees_where_known(engine: Engine) -> None:
    ranks = made_ranks(5, 6_000)
    query = {"lines": "1", "library": "1"}
    part = join([part_of(each, each.run.rank) for each in ranks])
    columns = part.columns.only(largest_paths(part, 1_000))
    job = profile_of(dataclasses.replace(part, columns=columns))
    kept = stored = 0
    for found, values in values_by_rank(engine, job, ranks, query):
        if found["values"] is not None:
            kept += 1
            # Smaller paths below count as if each rank had the share that it has of the kept path.
            assert found["values"] == pytest.approx(values, rel=0.1, abs=0.02 * max(values))
        elif found["most"] >= 0:
            stored += 1
            assert found["most"] == max(values)
            assert values[found["rank"]] == max(values)
    assert kept > 100
    assert stored > 100


def test_values_of_joined_ranks_are_known_for_all_phases_and_stored_metrics_only(
    engine: Engine,
) -> None:
    profile = joined(made_ranks(2))
    asked = [{"metric": "host_time_ns", "phase": "forward"}, {"metric": "call_duration_ns.count"}]
    questions = [("rank_values", {**each, "ranks": "1", "source": "0"}) for each in asked]
    phases, metrics = engine(opened(profile), questions)
    assert phases["values"] is metrics["values"] is None
    assert "all phases" in phases["why"]
    assert "measure" in metrics["why"]
