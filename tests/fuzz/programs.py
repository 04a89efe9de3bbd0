"""Several hundred programs, compiled by JAX for eight devices, as input for fuzz targets.

    python tests/fuzz/programs.py FOLDER

writes serialised HLO modules to FOLDER/jax_program, and to FOLDER/jax_window programs with a window of XLA's
tracer in which they ran (layout: native/fuzz/jax_window.cpp). Prints how many there are.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import os
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src.lib import _profiler
from jax.sharding import Mesh, NamedSharding, PartitionSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Program = tuple["Callable[..., Any]", tuple[Any, ...]]


def _words(text: str) -> list[str]:
    return text.split()


_TYPES = _words("""
    bool int2 int4 int8 int16 int32 int64 uint2 uint4 uint8 uint16 uint32 uint64 float16
    bfloat16 float32 float64 complex64 complex128 float4_e2m1fn float8_e3m4 float8_e4m3
    float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu
""")
_UNARY = _words("""
    abs acos acosh asin asinh atan atanh cbrt ceil cos cosh digamma erf erf_inv erfc exp exp2
    expm1 floor is_finite lgamma log log1p logistic neg reciprocal round rsqrt sign sin sinh
    sqrt square tan tanh cummax cumsum cumprod cumlogsumexp sort stop_gradient bessel_i0e
""")
_BINARY = _words("""
    add atan2 div eq ge igamma lt max min mul ne nextafter pow rem sub dot complex
""")
_NUMPY = _words("""
    argmax argsort corrcoef cov cumsum diff fliplr histogram linalg.cholesky linalg.det
    linalg.eigh linalg.inv linalg.norm linalg.pinv linalg.qr linalg.slogdet linalg.svd
    linalg.eigvals fft.fft fft.ifft2 fft.rfft fft.fftshift median nanmean percentile:50
    quantile:0.5 ravel roll:3 rot90 sort std tile:3 trace triu var vander
""")


def all_programs() -> Iterator[Program]:
    """Programs by what is in them."""
    yield from _types()
    yield from _functions()
    yield from _control_flow()
    yield from _layers()
    yield from _models()
    yield from _collectives()


def _types() -> Iterator[Program]:
    for name in _TYPES:
        x = np.arange(15).reshape(5, 3) % 2
        yield lambda x, name=name: x.astype(name)[::-1], (x,)
        yield lambda x, name=name: (x.astype(name) + x.astype(name)).sum(), (x,)
        yield lambda x, name=name: (x.astype(name).T, {"a": x.astype(name)}), (x,)


def _functions() -> Iterator[Program]:
    x = np.linspace(0.1, 0.9, 64, dtype=np.float32).reshape(8, 8)
    for name in _UNARY:
        yield getattr(lax, name), (x,)
    for name in _BINARY:
        yield getattr(lax, name), (x, x + 1)
    for word in _NUMPY:
        name, _, argument = word.partition(":")
        function = functools.reduce(getattr, name.split("."), jnp)
        more: Any = (float(argument) if "." in argument else int(argument),) if argument else ()
        vector = name == "vander"
        yield lambda x, function=function, more=more: function(x, *more), (x[0] if vector else x,)
    key = jax.random.key(0)
    for draw in (
        "normal",
        "uniform",
        "gamma",
        "categorical",
        "permutation",
        "bits",
        "truncated_normal",
    ):
        more = {
            "gamma": (2.0,),
            "categorical": (x,),
            "permutation": (x,),
            "truncated_normal": (0.0, 1.0),
        }
        yield (
            lambda key, draw=draw, more=more: getattr(jax.random, draw)(key, *more.get(draw, ())),
            (key,),
        )


def _control_flow() -> Iterator[Program]:
    x = np.ones((8, 8), np.float32)
    body: Callable[[Any], Any] = lambda x: jnp.tanh(x @ x)  # noqa: E731
    for steps in (1, 5):
        yield lambda x, steps=steps: lax.fori_loop(0, steps, lambda _, y: body(y), x), (x,)
        yield lambda x, steps=steps: lax.scan(lambda y, _: (body(y), y.sum()), x, None, steps), (x,)
        yield lambda x, n: lax.fori_loop(0, n, lambda _, y: body(y), x), (x, steps)
    yield lambda x: lax.while_loop(lambda y: y.sum() < 3, lambda y: y * 2 + 1, x), (x,)
    yield lambda x: lax.cond(x.sum() > 0, body, lambda y: y - 1, x), (x,)
    yield lambda x, i: lax.switch(i, [body, jnp.sin, jnp.cos, lambda y: y], x), (x, 2)
    yield lambda x: lax.map(lambda row: lax.cond(row[0] > 0, jnp.sum, jnp.prod, row), x), (x,)
    yield lambda x: lax.associative_scan(jnp.matmul, x[None].repeat(4, 0)), (x,)
    yield jax.vmap(lambda row: lax.while_loop(lambda y: y.sum() < 9, lambda y: y + 1, row)), (x,)
    yield jax.grad(lambda x: lax.scan(lambda y, _: (body(y), None), x, None, 4)[0].sum()), (x,)
    yield jax.grad(lambda x: jax.checkpoint(body)(x).sum()), (x,)
    yield jax.hessian(lambda row: (row**3).sum()), (x[0],)
    yield jax.jacfwd(body), (x,)
    for depth in (3, 12):
        yield lambda x, depth=depth: _nested(x, depth), (x,)
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    yield lambda x: jax.pure_callback(np.sin, shape, x, vmap_method="sequential"), (x,)
    yield lambda x: jax.debug.print("{}", x.sum()), (x,)
    yield lambda x: lax.reduce(x, 0.0, lambda a, b: a + b * b, (1,)), (x,)
    yield lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (3, 3), (2, 2), "SAME"), (x,)
    yield (
        jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (3, 3), (2, 2), "SAME").sum()),
        (x,),
    )
    yield lambda x: lax.top_k(x, 3), (x,)
    yield lambda x: lax.sort((x, x + 1), num_keys=2), (x,)
    yield lambda x, i: x.at[i].add(1.0, mode="drop"), (x, np.array([1, 9, 1]))
    yield lambda x, i: jnp.take_along_axis(x, i, 1), (x, np.ones((8, 2), np.int32))
    yield lambda x, i: lax.dynamic_update_slice(x, x[:2, :2], (i, i)), (x, 3)
    yield lambda x: lax.dynamic_slice(x, (1, 2), (3, 4)), (x,)
    yield lambda x: lax.bitcast_convert_type(x, jnp.uint32), (x,)
    yield lambda x: lax.reduce_precision(x, 5, 10), (x,)
    yield lambda x: (x, (x + 1, [x * 2, ()]), {"empty": jnp.zeros((0, 4))}), (x,)
    yield lambda *xs: sum(xs), (x,) * 120


def _nested(x: Any, depth: int) -> Any:
    if depth == 0:
        return jnp.sin(x)
    return lax.fori_loop(0, 2, lambda _, y: _nested(y, depth - 1), x)


def _layers() -> Iterator[Program]:
    for size, strides, dilation, groups in itertools.product((1, 3), (1, 2), (1, 2), (1, 4)):
        image, kernel = (
            np.ones((2, 8, 12, 12), np.float32),
            np.ones((8, 8 // groups, size, size), np.float32),
        )
        convolve = functools.partial(
            lax.conv_general_dilated,
            window_strides=(strides,) * 2,
            padding="SAME",
            rhs_dilation=(dilation,) * 2,
            feature_group_count=groups,
        )
        yield convolve, (image, kernel)
        yield jax.grad(lambda k, i, convolve=convolve: convolve(i, k).sum()), (kernel, image)
    yield (
        lambda x, k: lax.conv_transpose(x, k, (2,), "SAME"),
        (np.ones((1, 9, 4)), np.ones((3, 4, 5))),
    )
    for name in (
        "relu",
        "gelu",
        "softmax",
        "log_softmax",
        "silu",
        "elu",
        "logsumexp",
        "standardize",
    ):
        yield getattr(jax.nn, name), (np.ones((4, 16), np.float32),)
    heads = np.ones((2, 16, 4, 8), np.float32)
    for is_causal in (False, True):
        attend = functools.partial(jax.nn.dot_product_attention, is_causal=is_causal)
        yield attend, (heads, heads, heads)
        yield jax.grad(lambda q, attend=attend: attend(q, q, q).sum()), (heads,)
    for equation in ("ij,jk", "bij,bjk->bik", "ij,ij->", "ij->ji", "i,j->ij", "bhqd,bhkd->bhqk"):
        shapes = [(4,) * len(part) for part in equation.split("->")[0].split(",")]
        yield functools.partial(jnp.einsum, equation), tuple(np.ones(s, np.float32) for s in shapes)


def _models() -> Iterator[Program]:
    """Training steps of Flax and Optax, where they are installed."""
    x = np.ones((8, 16), np.float32)
    weights = [np.ones((16, 16), np.float32)] * 3

    def loss(weights: list[Any], x: Any) -> Any:
        return functools.reduce(lambda x, w: jax.nn.gelu(x @ w), weights, x).sum()

    yield jax.value_and_grad(loss), (weights, x)
    yield jax.vmap(jax.grad(loss), (None, 0)), (weights, x)
    try:
        nn, optax = importlib.import_module("flax.linen"), importlib.import_module("optax")
    except ImportError:
        return
    tokens = np.ones((2, 12), np.int32)
    models: list[tuple[Any, Any]] = [
        (nn.Sequential([nn.Dense(32), nn.relu, nn.LayerNorm(), nn.Dense(4)]), x),
        (nn.Sequential([nn.Embed(64, 16), nn.SelfAttention(4), nn.RMSNorm(), nn.Dense(8)]), tokens),
        (nn.RNN(nn.LSTMCell(16)), np.ones((2, 6, 8), np.float32)),
        (
            nn.Sequential([nn.Conv(8, (3, 3)), nn.GroupNorm(4), nn.relu]),
            np.ones((2, 12, 12, 4), np.float32),
        ),
    ]
    for (model, batch), make in itertools.product(
        models, (optax.sgd, optax.adam, optax.adafactor, optax.lion)
    ):
        parameters = model.init(jax.random.key(0), batch)
        optimizer = make(1e-3)

        def step(
            parameters: Any, state: Any, batch: Any, model: Any = model, by: Any = optimizer
        ) -> Any:
            gradients = jax.grad(lambda p: model.apply(p, batch).sum())(parameters)
            updates, state = by.update(gradients, state, parameters)
            return optax.apply_updates(parameters, updates), state

        yield step, (parameters, optimizer.init(parameters), batch)


def _collectives() -> Iterator[Program]:
    for shape in ((8,), (2, 4), (4, 2), (2, 2, 2)):
        names = "abc"[: len(shape)]
        mesh = Mesh(np.array(jax.devices()).reshape(shape), tuple(names))
        spec = PartitionSpec(*names)
        x = jax.device_put(np.ones((16,) * len(shape), np.float32), NamedSharding(mesh, spec))
        for count in range(1, len(names) + 1):
            for over in itertools.combinations(names, count):
                yield from _over(mesh, x, over)


def _over(mesh: Mesh, x: Any, over: tuple[str, ...]) -> Iterator[Program]:
    """Exchanges along some axes of a mesh."""
    names = mesh.axis_names
    kept = PartitionSpec(*(None if name in over else name for name in names))
    share = functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=x.sharding.spec,
        out_specs=x.sharding.spec,
        check_vma=False,
    )
    ring = [(i, (i + 1) % mesh.shape[over[0]]) for i in range(mesh.shape[over[0]])]
    exchanges: list[Callable[[Any], Any]] = [
        lambda x: lax.psum(x, over),
        lambda x: lax.pmax(x, over) - lax.pmin(x, over) + lax.pmean(x, over),
        lambda x: lax.all_gather(x, over, tiled=True),
        lambda x: lax.psum_scatter(lax.all_gather(x, over, tiled=True), over, tiled=True),
        lambda x: lax.all_to_all(lax.all_gather(x, over, tiled=True), over, 0, 0, tiled=True),
        lambda x: lax.ppermute(x, over[0], ring) + lax.axis_index(over[0]),
        lambda x: lax.fori_loop(0, 3, lambda _, y: lax.psum(y, over), x),
    ]
    for exchange in exchanges:
        yield share(exchange), (x,)
    axes = tuple(names.index(name) for name in over)
    yield lambda x: x.sum(axes), (x,)
    yield lambda x: x @ x.swapaxes(0, -1), (x,)
    yield lambda x: lax.with_sharding_constraint(x, NamedSharding(mesh, kept)), (x,)
    yield jax.grad(lambda x: jnp.tanh(x @ x.swapaxes(0, -1)).sum()), (x,)


def _compile(program: Program) -> tuple[Any, bytes]:
    function, arguments = program
    compiled = jax.jit(function).lower(*arguments).compile()
    (module,) = compiled.runtime_executable().hlo_modules()
    return compiled, module.as_serialized_hlo_module_proto()


def _window(compiled: Any, arguments: tuple[Any, ...]) -> bytes:
    options = _profiler.ProfileOptions()
    options.host_tracer_level = 1
    options.python_tracer_level = 0
    options.enable_hlo_proto = False
    session = _profiler.ProfilerSession(options)
    for _ in range(3):
        jax.block_until_ready(compiled(*arguments))
    content: bytes = session.stop()
    return content


def write_all(folder: Path) -> dict[str, int]:
    """Write everything; return how many files each target has."""
    programs, windows = folder / "jax_program", folder / "jax_window"
    for each in (programs, windows):
        each.mkdir(parents=True)
    every = 8  # programs: one is also run
    written = {"jax_program": 0, "jax_window": 0, "refused": 0}
    for number, program in enumerate(all_programs()):
        try:
            compiled, hlo = _compile(program)
        except Exception:  # noqa: BLE001  this JAX or this backend does not know it
            written["refused"] += 1
            continue
        # The last byte chooses processes; it ends an unknown field.
        (programs / f"{number}").write_bytes(hlo + b"\xf8\x3f" + bytes([number % 4]))
        written["jax_program"] += 1
        if number % every == 0:
            content = struct.pack("<I", len(hlo)) + hlo + _window(compiled, program[1])
            (windows / f"{number}").write_bytes(content)
            written["jax_window"] += 1
    return written


if __name__ == "__main__":
    print(write_all(Path(sys.argv[1])))
