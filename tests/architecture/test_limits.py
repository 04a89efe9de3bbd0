"""Each limit of the native code has a test that passes it, or a reason why none does.

A limit is a constant whose name begins with `kMost` or `kMax`. What is past a limit is counted, named, or
left out in a way that the report tells; a limit that costs figures in silence is a fault.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "native"
_CPP, _JAX, _HLO = "native/tests/test_{}.cpp", "tests/integration/jax", "tests/collectors/jax"
_LIMITS, _PARTS = _CPP.format("limits"), _CPP.format("gpu_parts")
_JAX_TURNS = _CPP.format("jax_collectives")
_NCCL = "tests/collectors/gpu/test_nccl.py"
_DEEP = "tests/native/test_deep_stacks.py"
_HLO_LIMITS = f"{_HLO}/test_hlo_limits.py"
# File and name of the limit: file and name of the test.
TESTED = {
    "core/allocation_ledger.h:kMaxPools": (
        _CPP.format("allocation_ledger"),
        "too_many_pools_are_refused",
    ),
    "core/allocation_table.h:kMaxSlots": (
        _CPP.format("allocation_ledger"),
        "a_full_table_counts_what_it",
    ),
    "core/allocation_table.h:kMostPercent": (_CPP.format("allocation_table"), "refuses_when_full"),
    "core/collective_sample.h:kMostRows": (_CPP.format("collectives"), "what_is_kept_is_bounded"),
    "core/collective_sample.h:kMostSamples": (_CPP.format("collectives"), "samples_are_bounded"),
    "core/ended_elsewhere.h:kMost": (_LIMITS, "the_oldest_ends_on_other_threads_are_forgotten"),
    "core/interner.h:kMostBytes": (_CPP.format("interner"), "names_of_a_program_are_joined_once"),
    "core/interner.h:kMostVariants": (_CPP.format("interner"), "names_with_counters_do_not_fill"),
    "core/parked_levels.h:kMost": (_LIMITS, "strands_past_the_most_that_wait_are_refused"),
    "core/recorder.h:kMaxLevels": (_CPP.format("recorder"), "levels_past_the_deepest_are_refused"),
    "core/recorder.h:kMaxScopes": (_DEEP, "test_scopes_left_open_are_refused_before_operators"),
    "core/recorder.h:kMaxPath": (_DEEP, "test_a_very_deep_path_is_cut_and_counted"),
    "core/recorder.h:kMostIdleBytes": (
        _CPP.format("registry"),
        "threads_of_ever_new_names_are_joined",
    ),
    "core/sequence_ring.h:kMaxSlots": (
        _CPP.format("sequence_ring"),
        "growth_ends_at_the_largest_window",
    ),
    "core/stretch.h:kMostParts": (_CPP.format("collectives"), "samples_of_a_stretch_belong_to"),
    "core/exemplars.h:kMostBytes": (_CPP.format("exemplars"), "steps_past_the_limit_of_bytes"),
    "core/exemplars.h:kMostSpans": (
        _CPP.format("exemplars"),
        "a_step_of_many_threads_keeps_its_last",
    ),
    "core/span_ring.h:kMostBytes": (_CPP.format("exemplars"), "rings_have_a_limit_together"),
    "core/windows.h:kMostWindows": (_CPP.format("windows"), "any_number_of_steps_has_few_windows"),
    "core/thread_tree.h:kMaxChunks": (_CPP.format("thread_tree"), "no_limit_lets_the_tree_outgrow"),
    "gpu/call_recorder.h:kMostOpen": (_LIMITS, "launches_nested_past_the_most_are_counted"),
    "gpu/correlation.h:kMaxRecorders": (_PARTS, "ids_may_wrap_and_recorders_may_not_fit"),
    "gpu/cupti/device_pool.h:kMostBuffers": (_PARTS, "buffers_are_bounded_read_and_reused"),
    "gpu/exposure.h:kMostOpen": (_CPP.format("exposure"), "more_streams_than_are_followed_lose"),
    "gpu/silent_graphs.h:kMostGraphs": (_PARTS, "graphs_past_the_last_number_are_not_silent"),
    "jax/collective_runs.cpp:kMostGroups": (_JAX_TURNS, "a_program_of_more_groups_than_the_limit"),
    "jax/collective_runs.cpp:kMostOperations": (_JAX_TURNS, "the_longest_work_before_a_collective"),
    "jax/collectives.h:kMostFunctions": (_JAX_TURNS, "functions_past_the_limit_are_left_out"),
    "jax/collectives.h:kMostOfRun": (_JAX_TURNS, "very_many_collectives_of_a_run_are_few_rows"),
    "jax/device_groups.cpp:kMostDimensions": (
        f"{_HLO}/test_device_groups.py",
        "test_each_form_is_read_or",
    ),
    "jax/hlo_cost.cpp:kMaxFusionDepth": (_HLO_LIMITS, "test_fusions_in_fusions_are_counted_once"),
    "jax/hlo_module.cpp:kMaxTupleDepth": (_HLO_LIMITS, "test_a_tuple_in_tuples_ends_at_a_depth"),
    "jax/live_arrays.cpp:kMaxDepth": (
        f"{_JAX}/test_memory.py",
        "test_what_a_result_holds_is_searched",
    ),
    "jax/live_arrays.cpp:kMaxContainers": (
        f"{_JAX}/test_memory.py",
        "test_what_a_result_holds_is_searched",
    ),
    "jax/live_arrays.cpp:kMaxVisits": (
        f"{_JAX}/test_memory.py",
        "test_what_a_result_holds_is_searched",
    ),
    "jax/program.cpp:kMaxFrames": (_HLO_LIMITS, "test_a_very_deep_stack_keeps_its_innermost"),
    "jax/program.cpp:kMaxSearch": (_HLO_LIMITS, "test_a_line_is_looked_for_through_so_many"),
    "jax/program.cpp:kMaxMembers": (_HLO_LIMITS, "test_a_fusion_lists_its_first_members"),
    "jax/program.cpp:kMaxNesting": (
        _HLO_LIMITS,
        "test_computations_that_run_each_other_very_deeply",
    ),
    "jax/program_table.cpp:kMostPlaceholders": (
        f"{_JAX}/test_program_limit.py",
        "test_programs_past_the_limit_are_credited_to_no",
    ),
    "jax/run_totals.cpp:kMostWeight": (_CPP.format("jax_sums"), "a_window_may_stand_for_more_runs"),
    "nccl/calls.h:kMostCommunicators": (_NCCL, "test_tables_that_are_full_cost_events"),
    "nccl/calls.h:kMostSums": (_NCCL, "test_tables_that_are_full_cost_events"),
    "nccl/calls.h:kMostNames": (_NCCL, "test_tables_that_are_full_cost_events"),
    "nccl/calls.h:kMostOpen": (_NCCL, "test_times_of_calls_that_are_forgotten"),
    "python/code_table.h:kMostBytes": (
        "tests/native/test_code_objects.py",
        "test_functions_of_ever_new_files_are_joined_past",
    ),
    "python/fork_pause.cpp:kMostLooks": (
        "tests/profiler/recording/test_operations.py",
        "test_a_fork_that_waits_for_the_handler_of_another",
    ),
    "python/native_merge.cpp:kMostFrames": (
        "tests/collectors/cpu/test_native_frames.py",
        "test_deep_native_recursion_is_cut_and_said",
    ),
    "sampling/counted_threads.cpp:kMostThreads": (
        "tests/collectors/cpu/test_counters.py",
        "test_threads_that_are_not_counted_are_told",
    ),
    "sampling/frame_sampling.h:kMostWalked": (
        "tests/native/test_hostile_frames.py",
        "test_a_walk_through_frames_in_a_ring_ends",
    ),
    "sampling/thread_account.h:kMostSamples": (
        _CPP.format("thread_account"),
        "a_thread_that_is_never_found",
    ),
    "sampling/thread_account.h:kMostSamplesReady": (
        _CPP.format("thread_account"),
        "where_processors_are_scarce",
    ),
    "sampling/thread_names.h:kMost": (_LIMITS, "threads_past_the_most_have_the_kernels_name"),
    "torch/collectives.h:kMostBytes": (_LIMITS, "sizes_past_the_largest_are_the_largest"),
    "torch/collectives.h:kMostPending": (
        _CPP.format("collectives"),
        "calls_without_work_and_work_without",
    ),
    "torch/collectives.h:kMostThreads": (_LIMITS, "works_of_threads_past_the_most_are_matched"),
    "torch/inputs.h:kMostInputs": (
        "tests/integration/torch/test_shapes.py",
        "test_a_long_list_of_shapes_ends",
    ),
    "torch/repeated_inputs.cpp:kMostLooks": (
        "tests/integration/torch/test_repeated_inputs.py",
        "test_values_that_hardly_differ_say_nothing",
    ),
    "torch/shapes.h:kMostParts": (
        "tests/integration/torch/test_shapes.py",
        "test_many_dimensions_are_named",
    ),
    "unwind/call_frame_program.h:kMostRemembered": (
        _LIMITS,
        "a_frame_program_that_remembers_too_many",
    ),
    "unwind/symbols.cpp:kMostBytes": (_LIMITS, "a_name_that_is_very_long_is_no_name"),
}
_NO_FIGURES = "how long a wait or a step is, which decides no figure"
_SAID_BY_NAME = (
    "the rest is shown under one name that says so; no vendor's library has a tenth of it"
)
_HUGE = "passing it takes more memory or time than a test may"
_SAMPLE = "how many values are looked at of more; an estimate by design"
EXEMPT = {
    "core/collective_sample.h:kMostLevels": "of numbers of 32 bits there are no more",
    "core/spin_lock.h:kMostTries": _NO_FIGURES,
    "core/spin_lock.h:kMostYields": _NO_FIGURES,
    "core/windows.h:kMostBytes": f"{_HUGE}; neighbours are joined, as past kMostWindows",
    "gpu/cupti/calls.h:kMost": "numbers of CUPTI's functions, of which there are a third",
    "gpu/cupti/moved_nodes.h:kMost": _HUGE,
    "gpu/cupti/stall_lines.cpp:kMostCubinBytes": "modules beyond have no lines, as modules loaded before",
    "gpu/cupti/stall_sampler.cpp:kMostNames": f"{_HUGE}; stops the sampling and says so",
    "gpu/graphs.h:kMost": f"{_HUGE}; kernels of further graphs stand under their replay",
    "gpu/rocprofiler/callbacks.cpp:kMostKernels": _SAID_BY_NAME,
    "gpu/rocprofiler/collector.cpp:kMostOperations": "numbers of HIP's functions, which are a quarter",
    "gpu/roctracer/collector.cpp:kMostKinds": _SAID_BY_NAME,
    "jax/arguments.cpp:kMaxSignatureDepth": "differences below give one signature, as values do",
    "jax/arguments.cpp:kMostEntries": "larger containers hold parameters, which are not looked for",
    "jax/live_arrays.cpp:kMaxSlots": f"{_HUGE}; arrays beyond are alive without a maker",
    "jax/nvtx_injection.cpp:kMostTexts": f"{_HUGE}; ranges beyond are unknown, and a share of those is told",
    "python/foreign_code.cpp:kMostCharacters": "no function has such a name; the sample has none there",
    "python/foreign_code.cpp:kMostTableBytes": f"{_HUGE}; as above",
    "python/holder_search.cpp:kMostCarriers": "holders beyond count fewer tensors, which only orders them",
    "python/module_table.h:kMaxInstances": f"{_HUGE}; further modules are named by their types",
    "python/strands.cpp:kMost": "event loops inside each other; CPython refuses the second",
    "sampling/frame_sampling.h:kMostInOneCall": f"{_HUGE}; such samples have no native function",
    "sampling/frame_sampling.h:kMostPassed": "tasks in each other; beyond, the path is shorter",
    "sampling/native_callees.cpp:kMostOfInterpreter": "of a chain of calls, whose end is kept, too",
    "sampling/perf_counters.h:kMostSamples": "as in thread_account.h",
    "sampling/remote_context.cpp:kMostThreads": _HUGE,
    "sampling/sample.h:kMaxFrames": "cut and counted as kMaxPath is",
    "sampling/sample.h:kMostBytes": "deeper stacks have no native function, which is counted",
    "sampling/signal_handler.h:kMost": f"{_HUGE}; threads beyond are counted as refused",
    "sampling/thread_visits.cpp:kMostRoundsBetweenVisits": _NO_FIGURES,
    "torch/collective_groups.cpp:kMostInputs": "the group is among the first inputs of each operator",
    "torch/collectives.cpp:kMost": "of the encoding of a share",
    "torch/collectives.h:kMostGroups": "calls in further groups are counted as unknown",
    "torch/ignored_targets.h:kMostLooks": _SAMPLE,
    "torch/padding.h:kMostLooks": _SAMPLE,
    "torch/param_comms.cpp:kMostNameBytes": "names of PyTorch's own, of at most 30 bytes",
    "torch/param_comms.cpp:kMostGroupBytes": "names of groups that PyTorch makes, of at most 64 bytes",
    "torch/repeated_inputs.cpp:kMostDimensions": "a call with such an input is compared with no other",
    "torch/repeated_inputs.h:kMost": "how far back a repetition is seen; an estimate by design",
    "torch/type_windows.cpp:kMostOperators": _SAMPLE,
    "unwind/stack_walk.cpp:kMostFrames": "the same limit as native_merge.cpp's, of libgcc's walk",
}


def _limits() -> set[str]:
    found = set()
    for path in [*NATIVE.rglob("*.h"), *NATIVE.rglob("*.cpp")]:
        if {"tests", "fuzz"} & set(path.parts):
            continue
        text = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
        for declaration in re.findall(r"\bconstexpr\b([^;]*);", text):
            names = re.findall(r"\b(k(?:Most|Max)\w*)\s*=", declaration)
            found |= {f"{path.relative_to(NATIVE)}:{name}" for name in names}
    return found


def test_each_limit_has_a_test_or_a_reason() -> None:
    assert _limits() == TESTED.keys() | EXEMPT.keys()
    assert not TESTED.keys() & EXEMPT.keys()


@pytest.mark.parametrize("limit", TESTED)
def test_the_test_exists(limit: str) -> None:
    path, name = TESTED[limit]
    assert re.search(rf"(TEST\(|def ){name}", (ROOT / path).read_text(encoding="utf-8"))
