"""A profile in the formats of other viewers: pprof, speedscope, collapsed stacks, Parquet, traces.

These formats cannot hold findings and the trust report, and only Parquet holds metrics that do not add
up; `deepcontext view` shows them. Traces hold the kept steps. A format is a module in this package with a
`FORMAT`, named in `FORMATS`.
"""

from __future__ import annotations

from typing import Final

# Only names, so that the command line can be parsed without importing the encoders.
FORMATS: Final = ("pprof", "speedscope", "collapsed", "parquet", "perfetto", "chrome-trace")
