"""A profile in the formats of other viewers: pprof, speedscope, collapsed stacks.

What those formats have no place for stays behind: maxima, distributions, findings, the trust
report. `deepcontext view` shows them. A format is a module here with a `FORMAT`, named in `FORMATS`.
"""

from __future__ import annotations

from typing import Final

# Names only: the command line is read without importing what does the work.
FORMATS: Final = ("pprof", "speedscope", "collapsed")
