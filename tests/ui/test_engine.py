"""The page's engine (`web/src/engine`), held to an oracle in Python (`tests/ui/oracle`).

Both answer the same questions about the same profiles: the same nodes, the same numbers to the
nanosecond.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from deepcontext.errors import DeepContextError
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, Aggregation, MetricDescriptor
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.metric_table import MetricTable
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.tables import TABLES
from deepcontext.profiler.views.layers import OPTIONAL_LAYERS
from deepcontext.profiler.views.pivot import pivots
from deepcontext.ui.measures import measures
from deepcontext.ui.web.json_text import to_json
from deepcontext.ui.web.one_file import page_data
from deepcontext.ui.web.open_profiles import OpenProfile, OpenProfiles
from tests.synthetic import random_profile
from tests.ui.conftest import gpu_profile
from tests.ui.oracle.ask import QUESTIONS
from tests.ui.oracle.options import EDITS
from tests.ui.test_web_ranks import joined, made_ranks, side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable

    Question = tuple[str, dict[str, str]]
    Answer = Callable[..., list[Any]]

WEB: Final = Path(__file__).parents[2] / "web"
PHASES: Final = [phase.label for phase in Phase if phase is not Phase.NONE]
# In one file, source text is shorter than on the server, and a note says so.
_TEXT: Final = ("parts", "note")


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    """Return a function that answers questions with the engine, in Node."""
    if shutil.which("npm") is None:
        pytest.skip("node is not installed: the page's engine is not run")
    if not (WEB / "node_modules").exists():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=WEB, check=True)
    folder = tmp_path_factory.mktemp("engine")
    subprocess.run(["node", "tests/build_engine.mjs", str(folder)], cwd=WEB, check=True)
    script = folder / "run_engine.mjs"

    def answer(
        profiles: OpenProfiles, questions: list[Question], *, warm: bool = False
    ) -> list[Any]:
        data, asked = folder / "data", folder / "questions.json"
        data.write_text("\n".join(page_data(profiles)), encoding="ascii")
        asked.write_text(json.dumps(questions), encoding="utf-8")
        command = ["node", str(script), str(data), str(asked), *(["warm"] if warm else [])]
        ran = subprocess.run(command, capture_output=True, check=True, cwd=folder)
        answers: list[Any] = json.loads(ran.stdout)["answers"]
        return answers

    return answer


def asked_of_python(profiles: OpenProfiles, what: str, query: dict[str, str]) -> Any:
    try:
        return json.loads(to_json(QUESTIONS[what](profiles, query)))
    except DeepContextError as error:
        return {"error": str(error)}


def compare(
    engine: Answer, profiles: OpenProfiles, questions: list[Question], *, warm: bool = False
) -> list[Any]:
    """Ask both; return the answers."""
    answers = engine(profiles, questions, warm=warm)
    for (what, query), answer in zip(questions, answers, strict=True):
        expected = asked_of_python(profiles, what, query)
        if what == "source" and "error" not in answer:
            for each in _TEXT:
                expected.pop(each)
                answer.pop(each)
        assert answer == expected, (what, query)
    return answers


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
        "pivot": random.choice(pivots(profile)),
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


def test_random_trees_under_random_switches(engine: Answer) -> None:
    nodes = lacking = 0
    for seed in range(100):
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
    assert nodes > 20_000  # not only refusals
    assert lacking > 1_000


def test_large_trees_are_cut_alike(engine: Answer) -> None:
    profile = varied(random_profile(30_000, depth=24), 1)
    others = [varied(random_profile(20_000, seed=seed, depth=24), 1) for seed in (1, 2)]
    profiles = opened(profile, *others)
    random = np.random.default_rng(7)
    answers = compare(engine, profiles, random_questions(random, profiles, 6))
    assert any(each.get("left_out") for each in answers)


def test_the_same_tree_of_other_profiles_is_another_answer(engine: Answer) -> None:
    profiles = opened(*(random_profile(500, seed=seed, depth=6) for seed in range(3)))
    files = ["0,1,2", "1,0,2", "2,0", "0,2", "0,1,2"]
    asked = [("flame", {"kind": "difference", "files": each}) for each in files]
    answers = compare(engine, profiles, asked)
    totals = [answer["totals"] for answer in answers]
    assert totals[0] == totals[4]
    assert totals[1] == [totals[0][1], totals[0][0], totals[0][2]]
    assert totals[2] == totals[3][::-1] == [totals[0][2], totals[0][0]]


@pytest.mark.parametrize("name", ["train", "empty", "troubled", "plain", "left", "spawned"])
def test_profiles_of_the_reports(engine: Answer, training_folder: Path, name: str) -> None:
    path = training_folder / f"{name}.dcprof"
    profiles = OpenProfiles.open([path, training_folder / "train.dcprof"])
    profile = profiles.get(0).profile
    random = np.random.default_rng(1)
    known = random_questions(random, profiles, 10) if measures(profile) else []
    answers = compare(engine, profiles, [*known, *other_questions(profile)])
    assert name == "empty" or any("functions" in each for each in answers)


@pytest.mark.parametrize("name", ["all", "no metric", "one node"])
def test_an_engine_that_warmed_up_answers_alike(engine: Answer, name: str) -> None:
    made = random_profile(1 if name == "one node" else 3_000)
    metrics = MetricTable({}) if name == "no metric" else made.metrics
    profiles = opened(Profile(made.frames, made.tree, metrics, made.run, made.trust))
    questions = [("flame", {}), ("table", {}), ("flame", {"pivot": "phase"})]
    answers = compare(engine, profiles, questions, warm=True)
    assert ("error" in answers[0]) == (name == "no metric")


def test_a_tree_is_split_by_many_ranks(engine: Answer, make_profile: Any) -> None:
    # More than the engine handles at once.
    ranks, parents, frames = 70, [0], [Frame(FrameKind.ROOT, "")]
    times: dict[int, int] = {}
    for rank in range(ranks):
        top = len(parents)
        parents += [0, top, top + 1, top + 2, top + 1]
        frames += [
            Frame(FrameKind.RANK, f"rank {rank}", line=rank),
            Frame(FrameKind.THREAD, "MainThread"),
            Frame(FrameKind.SCOPE, "step"),
            Frame(FrameKind.OPERATOR, f"aten::op_{rank % 7}"),
            Frame(FrameKind.OPERATOR, "aten::mm"),
        ]
        times |= {top + 3: rank + 1, top + 4: 2}
    profile = make_profile(parents, frames, host_time_ns=times)
    copies = [str(label * len(profile.tree) + 3) for label in (1, 31, 32, 33, ranks, ranks + 1)]
    split = {"pivot": "rank"}
    answers = compare(
        engine,
        opened(profile),
        [("flame", split), *(("node", {**split, "source": copy}) for copy in copies)],
    )
    assert answers[0]["nodes"]["depth"].count(1) == ranks
    assert answers[2]["values"][0]["inclusive"] == 31
    assert "error" in answers[-1]


def test_kernels_of_a_gpu(engine: Answer, make_profile: Any) -> None:
    profile = gpu_profile(make_profile, with_operator=True)
    profiles = opened(profile, profile)
    random = np.random.default_rng(2)
    every = [
        ("node", {"source": str(node), "metric": measures(profile)[0].key})
        for node in range(len(profile.tree))
    ]
    compare(engine, profiles, [*random_questions(random, profiles, 10), *every])


def test_refusals_are_the_servers(engine: Answer, training_folder: Path) -> None:
    profiles = OpenProfiles.open([training_folder / "train.dcprof"])
    answers = compare(
        engine,
        profiles,
        [
            ("flame", {"metric": "speed"}),
            ("flame", {"kind": "callers"}),
            ("flame", {"pivot": "rank"}),
            ("flame", {"root": "100000"}),
            ("flame", {"edits": "hide:100000"}),
            ("flame", {"hidden": "colour"}),
            ("node", {"source": "x"}),
            ("table", {"by": "colour"}),
            ("source", {"path": "/etc/passwd"}),
        ],
    )
    assert all("error" in each for each in answers)


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
    engine: Answer, merged: Profile, ranks: list[Profile], query: dict[str, str]
) -> list[tuple[dict[str, Any], list[int]]]:
    """Return for each node what the engine knows of the ranks, and the values in their own profiles."""
    query = {"metric": "host_time_ns", "pivot": "none", "px": "16384", **query}
    files = [{**query, "file": str(number)} for number in range(len(ranks) + 1)]
    known, whole, *own = engine(
        opened(merged, *ranks), [("by_rank", query), *(("flame", each) for each in files)]
    )
    found = {each["source"]: each for each in known}
    places = [by_path(each) for each in own]
    rows = []
    for path, place in by_path(whole).items():
        values = [
            answer["nodes"]["value"][of_rank[path]] if path in of_rank else 0
            for of_rank, answer in zip(places, own, strict=True)
        ]
        if sum(values) == whole["nodes"]["value"][place]:  # no rank's node was cut away
            rows.append((found[whole["nodes"]["source"][place]], values))
    assert len(rows) > len(places[0]) / 2
    return rows


@pytest.mark.parametrize("lines", ["", "1"])
@pytest.mark.parametrize("hidden", ["", "operator", "python,module"])
def test_values_of_ranks_side_by_side_are_those_of_their_own_trees(
    engine: Answer, lines: str, hidden: str
) -> None:
    ranks = [
        dataclasses.replace(each, run=dataclasses.replace(each.run, rank=rank, ranks=3))
        for rank in range(3)
        for each in [random_profile(300, seed=rank, depth=12)]
    ]
    query = {"lines": lines, "hidden": hidden, "library": "1"}
    for found, values in values_by_rank(engine, side_by_side(ranks), ranks, query):
        assert found["values"] == values
        assert found["spread"]["mean"] == pytest.approx(sum(values) / 3)
        assert found["spread"]["most"] == max(values)
        assert values[found["spread"]["mostRank"]] == max(values)


def test_values_of_joined_ranks_are_those_of_their_own_trees_where_known(engine: Answer) -> None:
    ranks = made_ranks(5, 6_000)
    query = {"lines": "1", "library": "1"}
    kept = stored = 0
    for found, values in values_by_rank(engine, joined(ranks), ranks, query):
        if found["values"] is not None:
            kept += 1
            # Smaller paths below count as if each rank had the share that it has of the kept path.
            assert found["values"] == pytest.approx(values, rel=0.1, abs=0.02 * max(values))
        elif found["spread"] is not None:
            stored += 1
            assert found["spread"]["most"] == max(values)
            assert values[found["spread"]["mostRank"]] == max(values)
    assert kept > 100
    assert stored > 100


def test_values_of_joined_ranks_are_known_for_all_phases_and_stored_metrics_only(
    engine: Answer,
) -> None:
    profile = joined(made_ranks(2))
    asked = [{"metric": "host_time_ns", "phase": "forward"}, {"metric": "call_duration_ns.count"}]
    assert engine(opened(profile), [("by_rank", each) for each in asked]) == [None, None]
