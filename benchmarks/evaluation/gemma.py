"""Gemma 2B, trained: the optimizer's state of the 7B that the paper runs does not fit one H100."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    batch: int
    tokens: int
    words: int
    width: int
    inner: int
    layers: int
    heads: int
    head: int


SIZES = {
    "tiny": Size(2, 32, 1000, 128, 512, 4, 4, 32),
    "paper": Size(4, 512, 256_000, 2048, 16_384, 18, 8, 256),
}


def torch_step(size: Size):
    import torch
    from training import trained
    from transformers import GemmaConfig, GemmaForCausalLM

    model = GemmaForCausalLM(
        GemmaConfig(
            vocab_size=size.words,
            hidden_size=size.width,
            intermediate_size=size.inner,
            num_hidden_layers=size.layers,
            num_attention_heads=size.heads,
            num_key_value_heads=1,
            head_dim=size.head,
            use_cache=False,
            dtype="bfloat16" if torch.get_default_device().type == "cuda" else "float32",
        )
    ).train()
    ids = torch.randint(3, size.words, (size.batch, size.tokens))
    return trained(model, lambda: model(ids, labels=ids).loss, rate=1e-4)


def jax_step(size: Size):
    import decoder
    import jax
    import jax.numpy as jnp
    import layers
    import numpy as np

    shape = decoder.Shape(
        size.words,
        size.width,
        size.inner,
        size.layers,
        size.heads,
        1,
        size.head,
        theta=10_000.0,
        is_gemma=True,
    )

    def loss(p, ids):
        return layers.cross_entropy(decoder.logits(p, shape, ids)[:, :-1], ids[:, 1:])

    dtype = jnp.bfloat16 if jax.default_backend() == "gpu" else jnp.float32
    ids = np.random.default_rng(0).integers(3, size.words, (size.batch, size.tokens))
    return layers.trained(loss, jnp.asarray(ids), dtype=dtype, rate=1e-4)
