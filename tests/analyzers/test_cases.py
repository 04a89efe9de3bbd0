"""Each analyzer fires on a real program that has its problem, and not on one without it."""

from __future__ import annotations

import linecache
import statistics
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deepcontext.analyzers import ALL, Severity, run_analyzers
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.summaries.jax.programs import INSERTED
from deepcontext.profiler.summaries.operator_work import operator_work

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.analyzers import Finding
    from deepcontext.profiler.model.profile import Profile

    Case = Callable[[str], Profile]
    Judge = Callable[[str, Callable[[Profile], None]], None]
    Seconds = Callable[[list[str]], list[list[float]]]

# Case, analyzer, and a word of the advice.
CASES = [
    ("hotspot", "hotspot", "once"),
    ("fused_optimizer", "kernel_fusion", "fused=True"),
    ("attention", "kernel_fusion", "scaled_dot_product_attention"),
    ("recurrent", "kernel_fusion", "torch.nn.LSTM"),
    ("operator_loop", "kernel_fusion", "torch.vmap"),
    ("element_reads", "kernel_fusion", "torch.where in place of 'if'"),
    ("own_optimizer", "kernel_fusion", "torch._foreach_"),
    ("clipping", "kernel_fusion", "torch._foreach_norm"),
    ("label_smoothing", "kernel_fusion", "torch.compile"),
    ("pairs", "kernel_fusion", "torch.cdist"),
    ("table", "kernel_fusion", "register_buffer"),
    ("decay", "kernel_fusion", "register_buffer"),
    ("embedding", "forward_backward", "index_select"),
    ("bags", "forward_backward", "sparse=True"),
    ("attached_state", "forward_backward", "state.detach()"),
    ("loader", "data_loading", "num_workers"),
    ("loading_line", "data_loading", "cheaper: do it once"),
    ("in_memory", "data_loading", "a whole batch at once"),
    ("corrected_labels", "data_loading", "a flat list"),
    ("synchronisation", "synchronisation", "tensor"),
    ("indices", "synchronisation", "tensor"),
    ("host_work", "host_work", "num_workers"),
    ("saving", "host_work", "save once in many steps"),
    ("model_read", "host_work", "load its file once"),
    ("listing", "host_work", "before the loop"),
    ("tensor_text", "host_work", "logger.debug"),
    ("layout", "copies", "channels_last"),
    ("cast", "copies", "convert once"),
    ("growing", "copies", "preallocated"),
    ("written_parts", "copies", "torch.stack"),
    ("weight_cast", "copies", "one torch.autocast around"),
    ("one_hot", "copies", "functional.embedding"),
    ("recompilation", "recompilation", "TORCH_LOGS"),
    ("graph_break", "recompilation", "fullgraph"),
    ("variance", "variance", "--shapes"),
    ("shapes", "variance", "the same shapes"),
    ("shapes_integers", "far_from_peak", "float64"),
    ("anomaly", "settings", "set_detect_anomaly"),
    ("zero_grad", "settings", "set_to_none=True"),
    ("dropout", "settings", "model.eval()"),
    ("parametrization", "settings", "remove_parametrizations"),
    ("frozen_encoder", "settings", "requires_grad_(False)"),
    ("unused_head", "settings", "nothing reads its result"),
    ("prefix", "model_calls", "KV cache"),
    ("thin_product", "model_calls", "two small matrices"),
    ("metric", "model_calls", "once after the loop"),
    ("single_samples", "model_calls", "give the model batches"),
    ("sample_losses", "model_calls", "give the model batches"),
    ("padding", "padding", "longest sample"),
    ("ignored_targets", "padding", "before the last layer"),
    ("diagonal", "padding", "Independent(Normal("),
    ("sparse_matrix", "padding", "to_sparse_csr()"),
    ("workers", "data_loading", "no more workers than cores"),
    ("sent_singly", "data_loading", "torch.cat"),
    ("memory", "memory", "a list of tensors"),
    ("serving", "memory", "smaller scope"),
    ("unused_graph", "memory", "torch.no_grad()"),
    ("shallow_graph", "memory", "torch.no_grad()"),
    ("logged_errors", "memory", ".detach()"),
    ("kept_outputs", "memory", ".detach()"),
    ("kept_view", "memory", ".clone()"),
    ("held_file", "memory", "mmap=True"),
    ("retained", "memory", "no retain_graph=True"),
    ("feature_history", "memory", "keeps the tensors of past steps"),
    ("widened", "memory", "convert and scale each batch"),
    ("past_answers", "memory", "keep only what is needed of each call"),
    ("summed_losses", "memory", "backward for the loss of each part"),
    ("shapes_doubles", "precision", "numpy.float32"),
    ("doubles", "precision", "numpy.float32"),
    ("math_attention", "settings", "fused backend"),
    ("jax_checks", "settings", "JAX_DEBUG_INFS=1"),
    ("prompt", "model_calls", "whole prompt"),
    ("class_masks", "kernel_fusion", "bincount"),
    ("beam_cache", "copies", "reorder only what differs"),
    ("collecting", "host_work", "gc.freeze()"),
    ("requests", "host_work", "before the loop"),
    ("watched", "host_work", "once in many steps"),
    ("relatedness", "host_work", "optimize=True"),
    ("label_texts", "model_calls", "once before the loop"),
    ("directions", "cheaper_operator", "torch.svd_lowrank"),
    ("inverse", "cheaper_operator", "cholesky_solve"),
    ("smoothing", "cheaper_operator", "torch.fft.rfft"),
    ("cooccurrence", "cheaper_operator", "floating-point numbers"),
    ("edges", "cheaper_operator", "two convolutions"),
    ("enlarged", "cheaper_operator", "before upsampling"),
    ("autocorrelation", "cheaper_operator", "torch.fft.irfft"),
    ("whitened", "cheaper_operator", "scale the rows"),
    ("pendulum", "kernel_fusion", "single numbers in Python"),
    ("growing_mean", "host_work", "keep running values"),
    ("saved_parts", "host_work", "part.clone()"),
    ("second_graph", "memory", "create_graph=self.training"),
    ("species", "cheaper_operator", "cross_entropy(logits, classes"),
    ("neighbours", "cheaper_operator", "before the gather"),
    ("polling", "host_work", "wait instead of asking"),
    ("drawing", "host_work", "torch.multinomial"),
    ("threads", "settings", "torch.set_num_threads"),
    ("ranks", "straggler", "unequal batches or shards"),
    ("ranks_rooted", "rank_imbalance", "shards of equal size"),
    # The published case studies.
    ("recommendation", "forward_backward", "index_select"),
    ("graph", "forward_backward", "index_select"),
    ("rms_norm", "copies", "rms_norm"),
    ("eager", "kernel_fusion", "torch.compile"),
    ("gpu_layout", "copies", "channels_last"),
    ("gpu_warp", "launch_configuration", "multiple of 64"),
    # On a simulated GPU.
    ("gpu_starvation", "device_starvation", "out of the step"),
    ("gpu_precision", "precision", "TF32"),
    ("gpu_launch", "launch_configuration", "more blocks"),
    ("gpu_batch", "launch_configuration", "raise the batch"),
    ("gpu_fusion", "kernel_fusion", "CUDA graph"),
    ("gpu_copies", "copies", "pin_memory"),
    ("gpu_synchronisation", "synchronisation", "on the device"),
    ("gpu_stall", "stall_reasons", "constant cache"),
    # JAX
    ("jax_recompute", "jax_fusion", "dots_saveable"),
    ("jax_value_twice", "jax_fusion", "jax.value_and_grad"),
    ("jax_hessian", "jax_fusion", "without the matrix"),
    ("jax_branches", "jax_fusion", "jax.lax.map"),
    ("jax_permutation", "jax_fusion", "jax.random.randint"),
    ("jax_diagonal", "jax_fusion", "scale by broadcasting"),
    ("jax_transform", "jax_fusion", "jnp.fft.irfft"),
    ("jax_jacobian", "jax_fusion", "jax.jacfwd"),
    ("jax_factors", "jax_fusion", "lu_factor"),
    ("jax_retrace", "recompilation", "pad"),
    ("jax_captured", "recompilation", "as arguments"),
    ("jax_waits", "synchronisation", "only once in many steps"),
    ("jax_callback", "synchronisation", "scan stacks them"),
    ("jax_lists", "host_work", "a NumPy array instead of lists"),
    ("jax_host_table", "copies", "jax.device_put"),
    ("jax_layout", "jax_fusion", "layout"),
    ("jax_carry", "jax_fusion", "loop state"),
    ("jax_eager", "kernel_fusion", "@jax.jit"),
    ("jax_growing", "memory", "a list of tensors"),
    ("jax_history", "memory", "what is needed of each state"),
    ("jax_loop", "kernel_fusion", "jax.lax.scan"),
    ("jax_leaves", "kernel_fusion", "stacked in a few arrays"),
    ("jax_passed_on", "jax_fusion", "unroll=2"),
    ("jax_unrolled", "kernel_fusion", "write the loop as jax.lax.scan"),
    ("jax_roofline", "jax_fusion", "fold the fusion into the product"),
]
# Programs without a twin that has the problem.
HEALTHY = [
    ("accumulation", "kernel_fusion"),
    ("layers", "kernel_fusion"),
    ("scoring", "kernel_fusion"),
    ("evaluating", "kernel_fusion"),
    ("channels", "model_calls"),
    ("collected_arrays", "memory"),
    ("similarity", "copies"),
    ("sound", "copies"),
    ("shapes_integers", "precision"),
    ("policy", "kernel_fusion"),
    ("ranks_roles", "rank_imbalance"),
    # See the test of programs whose finding is no warning.
    ("jax_stencil", "kernel_fusion"),
    ("jax_stream", "jax_fusion"),
]
# Share by which the gain of a fix may differ between two short runs.
_NOISE = 0.1
IDS = [f"{name}-{analyzer}" for name, analyzer, _ in CASES]


@pytest.mark.parametrize(("name", "analyzer", "advice"), CASES, ids=IDS)
def test_fires_on_the_problem_at_its_line(
    judge: Judge, name: str, analyzer: str, advice: str
) -> None:
    def fires(profile: Profile) -> None:
        if name == "shapes_integers" and not _multiplies_integers_slowly(profile):
            pytest.skip("this processor multiplies int64 at half the rate of float64 or more")
        findings = run_analyzers(profile, only=[analyzer])
        assert any(advice in finding.advice for finding in findings)
        lines = {line for finding in findings for line in _lines(profile, finding)}
        assert any("# the" in line and "problem" in line for line in lines), lines

    judge(f"{name}_problem", fires)


@pytest.mark.parametrize(
    ("name", "analyzer"), [*((name, analyzer) for name, analyzer, _ in CASES), *HEALTHY]
)
def test_silent_on_the_healthy_program(judge: Judge, name: str, analyzer: str) -> None:
    judge(f"{name}_healthy", lambda profile: _is_silent(profile, analyzer))


def test_every_analyzer_and_every_program_has_a_case() -> None:
    assert {analyzer for _, analyzer, _ in CASES} == {analyzer.id for analyzer in ALL}
    programs = {path.stem for path in (Path(__file__).parent / "cases").glob("*.py")}
    kinds = ("problem", "healthy")
    pairs = {f"{name}_{kind}" for name, _, _ in CASES for kind in kinds}
    assert programs == pairs | {f"{name}_healthy" for name, _ in HEALTHY}


def test_findings_name_the_number_of_multiprocessors(case: Case) -> None:
    (finding,) = run_analyzers(case("gpu_launch_problem"), only=["launch_configuration"])
    assert finding.evidence["multiprocessors"] == 132
    assert finding.gain is not None
    assert finding.gain.upper_bound_share == pytest.approx(2 / 3 * (1 - 8 / 132), rel=0.01)


def test_reads_of_a_program_without_a_gpu_are_one_finding(judge: Judge) -> None:
    def is_one(profile: Profile) -> None:
        (finding,) = run_analyzers(profile, only=["synchronisation"])
        assert finding.severity is Severity.INFO
        assert "and 2 more lines read values from tensors 3 times a step" in finding.title

    judge("synchronisation_problem", is_one)


def test_checks_of_launches_are_one_finding(judge: Judge) -> None:
    def is_one(profile: Profile) -> None:
        assert not run_analyzers(profile, only=["kernel_fusion"])
        (finding,) = run_analyzers(profile, only=["settings"])
        assert finding.severity is not Severity.INFO
        assert finding.title.startswith("jax_debug_infs is on")

    judge("jax_checks_problem", is_one)


def test_waits_of_a_jax_program_without_a_device_are_no_warning(judge: Judge) -> None:
    def is_info(profile: Profile) -> None:
        (finding,) = run_analyzers(profile, only=["synchronisation"])
        assert finding.severity is Severity.INFO

    judge("jax_waits_problem", is_info)


@pytest.mark.parametrize(
    ("name", "analyzer"), [("jax_stencil", "jax_fusion"), ("jax_stream", "kernel_fusion")]
)
def test_costs_that_a_jax_program_can_hardly_avoid_are_no_warning(
    judge: Judge, name: str, analyzer: str
) -> None:
    def is_info(profile: Profile) -> None:
        findings = run_analyzers(profile, only=[analyzer])
        assert {finding.severity for finding in findings} <= {Severity.INFO}

    judge(f"{name}_healthy", is_info)


@pytest.mark.parametrize("name", ["serving_healthy", "variance_problem"])
def test_calls_of_uneven_duration_raise_the_question_of_input_sizes(
    judge: Judge, name: str
) -> None:
    """Asked once per program, and never if other processes used its cores: they may be the cause."""

    def asks(profile: Profile) -> None:
        findings = run_analyzers(profile, only=["variance"])
        assert len(findings) <= 1
        assert len(findings) == 1 or source_locations.crowded_ns(profile)
        for finding in findings:
            assert finding.severity is Severity.INFO
            assert finding.gain is None
            assert finding.title.endswith("do the sizes of its inputs differ?")

    judge(name, asks)


def test_changed_argument_of_a_jax_function_is_named(judge: Judge) -> None:
    def is_named(profile: Profile) -> None:
        findings = run_analyzers(profile, only=["recompilation"])
        assert ["f32[" in str(finding.evidence["changes"]) for finding in findings] == [True]

    judge("jax_retrace_problem", is_named)


def test_a_product_that_is_a_fusion_has_no_other_finding(judge: Judge) -> None:
    """Neither do arrays of two shapes, for which JAX compiles an internal function twice."""

    def is_silent(profile: Profile) -> None:
        assert [finding.title for finding in run_analyzers(profile)] == []

    judge("jax_roofline_healthy", is_silent)


def test_one_of_a_chain_of_pointwise_operators_remains(judge: Judge) -> None:
    def remains(profile: Profile) -> None:
        findings = run_analyzers(profile, only=["kernel_fusion"])
        (finding,) = [each for each in findings if "pointwise_ns" in each.evidence]
        spent, count = (int(finding.evidence[key]) for key in ("pointwise_ns", "operators_count"))
        assert finding.gain is not None
        assert finding.gain.upper_bound == spent - spent // count

    judge("eager_problem", remains)


def test_every_operation_that_xla_inserted_has_its_name(case: Case) -> None:
    markers = case("jax_carry_problem").query().kind("marker").name(INSERTED)
    assert markers.total("device_time_ns", inclusive=True) > 0
    assert markers.total("device_time_ns") == 0


def test_every_graph_break_is_named(judge: Judge) -> None:
    def is_named(profile: Profile) -> None:
        findings = run_analyzers(profile, only=["recompilation"])
        assert all("resume" not in finding.title for finding in findings)

    judge("graph_break_problem", is_named)


def test_location_is_omitted_where_the_reason_is_known(judge: Judge) -> None:
    def is_explained(profile: Profile) -> None:
        found = run_analyzers(profile)
        assert "copies" in {finding.id for finding in found}
        places_only = [finding.title for finding in found if finding.id == "hotspot"]
        assert not any("aten::copy_" in title for title in places_only)

    judge("cast_problem", is_explained)


def test_layer_that_converts_there_and_back_is_one_finding(judge: Judge) -> None:
    def is_one(profile: Profile) -> None:
        (finding,) = run_analyzers(profile, only=["copies"])
        assert finding.title.startswith("RMSNorm.forward converts tensors there and back")
        lines = {line for line in _lines(profile, finding) if "# the problem" in line}
        assert len(lines) == 2
        assert finding.gain is not None
        assert finding.gain.upper_bound == finding.evidence["layer_ns"]

    judge("rms_norm_problem", is_one)


def test_the_slow_rank_is_named_and_not_those_that_wait(judge: Judge) -> None:
    def is_named(profile: Profile) -> None:
        (finding,) = run_analyzers(profile, only=["rank_imbalance"])
        assert finding.evidence["rank"] == 1
        assert "(load)" in finding.title
        assert int(finding.evidence["most_ns"]) >= 40 * 90_000_000

    judge("ranks_rooted_problem", is_named)


def test_the_late_rank_and_its_line_are_told_once(judge: Judge) -> None:
    def is_told(profile: Profile) -> None:
        (finding,) = run_analyzers(profile, only=["rank_imbalance", "straggler"])
        assert (finding.id, finding.evidence["rank"]) == ("straggler", 1)
        assert ", waiting at " in finding.title
        assert "(load)" in finding.title

    judge("ranks_problem", is_told)


def test_collections_are_one_finding(judge: Judge) -> None:
    def is_one(profile: Profile) -> None:
        (finding,) = run_analyzers(profile, only=["host_work"])
        assert finding.title.startswith("Python's garbage collector takes")

    judge("collecting_problem", is_one)


def test_a_model_that_is_read_again_is_one_finding(judge: Judge) -> None:
    """Its weights are also copied into the model, and drawn before."""

    def is_one(profile: Profile) -> None:
        loud = [each for each in run_analyzers(profile) if each.severity is not Severity.INFO]
        assert [each.id for each in loud] == ["host_work"]

    judge("model_read_problem", is_one)


def test_what_holds_the_tensors_is_named(judge: Judge) -> None:
    def is_named(profile: Profile) -> None:
        (finding,) = run_analyzers(profile, only=["memory"])
        assert "list Trainer.logged holds 200 tensors, 200 with a graph" in finding.title
        assert finding.evidence["held_bytes"] == 200 * 512 * 256 * 4

    judge("kept_outputs_problem", is_named)


def test_memory_that_grows_is_one_finding_with_its_holder(judge: Judge) -> None:
    def is_one(profile: Profile) -> None:
        (finding,) = run_analyzers(profile, only=["memory"])
        assert "list 'kept' of memory_problem.py holds 30 tensors, 30 with a graph" in finding.title

    judge("memory_problem", is_one)


def test_more_workers_than_cores_are_named(judge: Judge) -> None:
    def is_named(profile: Profile) -> None:
        titles = [finding.title for finding in run_analyzers(profile, only=["data_loading"])]
        workers = 2 * profile.run.cpu_count + 1
        assert any(f"{workers} loader workers share" in title for title in titles), titles

    judge("workers_problem", is_named)


# Healthy programs that do the work of their problem several times, because once is too short.
_TIMES = {"single_samples": 10, "sample_losses": 20, "padding": 10}


# Left out: attention, whose fused form saves memory and no time on a CPU; variance, requests,
# loading_line and workers, whose healthy programs do other work; synchronisation, which costs nothing
# without a device; recompilation of torch.compile and memory, whose gains are no time; threads,
# sent_singly and jax_checks, whose gains are elapsed and no processor time; operator_loop, element_reads,
# table and tensor_text, whose bounds are too low, because the fix also saves Python around the operators;
# bags, whose fix also saves the optimizer's pass over the table; saving and growing_mean, whose bounds are
# too low, too, because the profiler's own part in small operators makes the rest of the program longer;
# programs on a simulated GPU; jobs of several ranks.
@pytest.mark.gains
@pytest.mark.parametrize(
    ("name", "analyzer"),
    [
        ("hotspot", "hotspot"),
        ("fused_optimizer", "kernel_fusion"),
        ("recurrent", "kernel_fusion"),
        ("label_smoothing", "kernel_fusion"),
        ("embedding", "forward_backward"),
        ("recommendation", "forward_backward"),
        ("graph", "forward_backward"),
        ("attached_state", "forward_backward"),
        ("layout", "copies"),
        ("cast", "copies"),
        ("growing", "copies"),
        ("rms_norm", "copies"),
        ("beam_cache", "copies"),
        ("weight_cast", "copies"),
        ("eager", "kernel_fusion"),
        ("own_optimizer", "kernel_fusion"),
        ("clipping", "kernel_fusion"),
        ("pairs", "kernel_fusion"),
        ("decay", "kernel_fusion"),
        ("loader", "data_loading"),
        ("in_memory", "data_loading"),
        ("corrected_labels", "data_loading"),
        ("host_work", "host_work"),
        ("listing", "host_work"),
        ("collecting", "host_work"),
        ("polling", "host_work"),
        ("drawing", "host_work"),
        ("watched", "host_work"),
        ("relatedness", "host_work"),
        ("label_texts", "model_calls"),
        ("directions", "cheaper_operator"),
        ("inverse", "cheaper_operator"),
        ("smoothing", "cheaper_operator"),
        ("cooccurrence", "cheaper_operator"),
        ("edges", "cheaper_operator"),
        ("enlarged", "cheaper_operator"),
        ("autocorrelation", "cheaper_operator"),
        ("whitened", "cheaper_operator"),
        ("pendulum", "kernel_fusion"),
        ("saved_parts", "host_work"),
        ("species", "cheaper_operator"),
        ("neighbours", "cheaper_operator"),
        ("anomaly", "settings"),
        ("zero_grad", "settings"),
        ("dropout", "settings"),
        ("frozen_encoder", "settings"),
        ("unused_head", "settings"),
        ("prefix", "model_calls"),
        ("single_samples", "model_calls"),
        ("sample_losses", "model_calls"),
        ("padding", "padding"),
        ("ignored_targets", "padding"),
        ("diagonal", "padding"),
        ("sparse_matrix", "padding"),
        ("thin_product", "model_calls"),
        ("shapes_doubles", "precision"),
        ("doubles", "precision"),
        ("math_attention", "settings"),
        ("prompt", "model_calls"),
        ("shapes_integers", "far_from_peak"),
        ("jax_recompute", "jax_fusion"),
        ("jax_retrace", "recompilation"),
        ("jax_value_twice", "jax_fusion"),
        ("jax_hessian", "jax_fusion"),
        ("jax_branches", "jax_fusion"),
        ("jax_permutation", "jax_fusion"),
        ("jax_diagonal", "jax_fusion"),
        ("jax_transform", "jax_fusion"),
        ("jax_jacobian", "jax_fusion"),
        ("jax_factors", "jax_fusion"),
        ("jax_layout", "jax_fusion"),
        ("jax_carry", "jax_fusion"),
        ("jax_eager", "kernel_fusion"),
        ("jax_loop", "kernel_fusion"),
        ("jax_passed_on", "jax_fusion"),
        ("jax_roofline", "jax_fusion"),
        ("jax_lists", "host_work"),
        ("jax_host_table", "copies"),
    ],
)
def test_the_fix_saves_what_the_finding_expects(
    judge_warm: Judge, seconds: Seconds, name: str, analyzer: str
) -> None:
    def holds(profile: Profile) -> None:
        if name == "shapes_integers" and not _multiplies_integers_slowly(profile):
            pytest.skip("this processor multiplies int64 at half the rate of float64 or more")
        problem, healthy = seconds([f"{name}_problem", f"{name}_healthy"])
        times = _TIMES.get(name, 1)
        saved = statistics.median(
            1 - new / times / old for old, new in zip(problem, healthy, strict=True)
        )
        gains = [each.gain for each in run_analyzers(profile, only=[analyzer]) if each.gain]
        bound = sum(gain.upper_bound_share for gain in gains)
        # Of what each finding's share refers to.
        parts = [gain.upper_bound_share / max(gain.upper_bound, 1) for gain in gains]
        low, high = (
            sum(part * (limit or 0) for part, limit in zip(parts, limits, strict=True))
            for limits in ([gain.low for gain in gains], [gain.high for gain in gains])
        )
        print(
            f"{name}: the fix saves {saved:.0%}, expected {low:.0%} to {high:.0%}, bound {bound:.0%}"
        )
        assert 0 < saved <= bound + _NOISE
        if all(gain.low is not None for gain in gains):
            assert low - _NOISE <= saved <= high + _NOISE

    judge_warm(f"{name}_problem", holds)


def _multiplies_integers_slowly(profile: Profile) -> bool:
    """Whether products of int64 have less than half the measured rate of float64; not so with AVX-512."""
    work = operator_work(profile)
    assert work is not None
    assert work.roof is not None
    rates = work.roof.peaks.flops_per_second
    return rates["i64"] < rates["f64"] / 2


def _is_silent(profile: Profile, analyzer: str) -> None:
    found = run_analyzers(profile, only=[analyzer])
    if analyzer == "jax_fusion":
        # Fusions that move memory are questions, asked where enough launches were sampled to have a share.
        found = tuple(each for each in found if each.severity is not Severity.INFO)
    assert found == ()


def _lines(profile: Profile, finding: Finding) -> list[str]:
    """Return the texts of the cases' lines on the paths of a finding."""
    frames = [frame for node in finding.nodes for frame in profile.path(node)]
    return [
        linecache.getline(frame.file, frame.line)
        for frame in frames
        if frame.kind is FrameKind.PYTHON and Path(frame.file).parent.name == "cases"
    ]
