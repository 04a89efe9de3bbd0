"""The profile: how it is recorded, what it holds, what it says.

Five rooms; imports go down, never up:

    views       trees made for looking at
    summaries   one question to a profile each
    model       what a profile holds        recording   the session in the program under test
    format      what recording and reading share

Knows no framework by name but in `summaries/jax`, which reads a section that JAX's collector wrote, and
in `model/compiled_kernels.py`: a summary may know what a kind of frame or a section is, not how a
framework works. Nothing here prints.
"""
