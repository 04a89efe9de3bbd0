"""Metrics and figures have readable names, with the unit at the value."""

from __future__ import annotations

import pytest

from deepcontext.ui.labels import figure, figures, metric_label


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("host_time_ns", "host time"),
        ("gpu_time_ns", "GPU time"),
        ("sampled_gil_wait_time_ns", "sampled GIL wait time"),
        ("flops", "FLOPs"),
        ("launch_count", "launches"),
        ("sampled_operators_count", "sampled operators"),
        ("register_count", "registers"),
        ("alloc_bytes", "memory allocated"),
        ("gpu_alloc_bytes", "GPU memory allocated"),
        ("peak_bytes", "peak memory"),
        ("gpu_peak_activation_bytes", "GPU peak memory: activation"),
        ("own_peak_bytes", "own peak memory"),
        ("jax_peak_bytes", "JAX peak memory"),
        ("tokens", "tokens"),
        ("cache_bytes", "cache"),
    ],
)
def test_metrics_are_named_in_words(name: str, label: str) -> None:
    assert metric_label(name) == label


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("internal_cpu_time_ns", "207949508", ("internal CPU time", "208 ms")),
        ("rate_hz", "100.0", ("rate", "100 Hz")),
        ("sampled_s", "8.5", ("sampled", "8.50 s")),
        ("pool_bytes", "67108864", ("pool", "64.0 MiB")),
        ("events", "31990", ("events", "31,990")),
        ("version", "130001", ("version", "130001")),
        ("torch", "2.13.0+cpu", ("torch", "2.13.0+cpu")),
    ],
)
def test_a_figure_has_its_unit(name: str, value: str, shown: tuple[str, str]) -> None:
    assert figure(name, value) == shown


def test_counters_of_zero_are_left_out() -> None:
    assert figures({"cut_at_start": "0", "paused_s": "0.0", "joined": "3"}) == {"joined": "3"}
