"""Llama 3 8B, as a server runs it: a prompt, then tokens one by one with a cache of keys and values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    batch: int
    prompt: int
    made: int
    words: int
    width: int
    inner: int
    layers: int
    heads: int
    shared: int


SIZES = {
    "tiny": Size(2, 32, 8, 1000, 128, 448, 4, 8, 2),
    "paper": Size(4, 512, 32, 128_256, 4096, 14_336, 32, 32, 8),
}


def torch_step(size: Size):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=size.words,
            hidden_size=size.width,
            intermediate_size=size.inner,
            num_hidden_layers=size.layers,
            num_attention_heads=size.heads,
            num_key_value_heads=size.shared,
            rope_parameters={"rope_type": "default", "rope_theta": 500_000.0},
            dtype="bfloat16" if torch.get_default_device().type == "cuda" else "float32",
        )
    ).eval()
    prompt = torch.randint(3, size.words, (size.batch, size.prompt))

    def step() -> torch.Tensor:
        made = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=size.made,
            min_new_tokens=size.made,
            do_sample=False,
            pad_token_id=0,
        )
        return made[0, -1]

    return step


def jax_step(size: Size):
    import decoder
    import jax
    import jax.numpy as jnp
    import layers
    import numpy as np

    head = size.width // size.heads
    shape = decoder.Shape(
        size.words, size.width, size.inner, size.layers, size.heads, size.shared, head
    )
    dtype = jnp.bfloat16 if jax.default_backend() == "gpu" else jnp.float32
    prompt = np.random.default_rng(0).integers(3, size.words, (size.batch, size.prompt))
    prompt = jnp.asarray(prompt)
    values = layers.initial(lambda p, ids: decoder.logits(p, shape, ids), prompt, dtype=dtype)
    kept = (size.layers, 2, size.batch, size.prompt + size.made, size.shared, head)
    empty = jnp.zeros(kept, dtype)

    def advance(values, cache, ids, begin):
        logits, cache = decoder.cached_logits(layers.Parameters(values), shape, ids, cache, begin)
        return cache, jnp.argmax(logits[:, -1:], axis=-1)

    advance = jax.jit(advance)

    def step() -> jax.Array:
        cache, ids = advance(values, empty, prompt, 0)
        for index in range(size.made - 1):
            cache, ids = advance(values, cache, ids, size.prompt + index)
        return ids[0, 0]

    return step
