"""What sections of a profile hold, in words, for sections that a merge leaves out."""

from typing import Final

SECTION_TITLES: Final = {
    "memory": "memory composition at the peak",
    "jax": "compiled JAX programs",
    "collectives": "times of single collectives",
    "nccl": "collectives of NCCL by algorithm",
    "peaks": "peaks of the machine",
    "jax_collectives": "times of single collectives of compiled programs",
    "holders": "objects that hold tensors",
    "torch_settings": "settings of PyTorch",
    "native_files": "identities of native libraries",
    "source_text": "text of source lines",
    "steps": "what ends a step",
    "exemplars": "steps that were kept whole",
    "windows": "windows of the run (set-up, warm-up, steady state)",
}
