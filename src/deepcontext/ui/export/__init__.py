"""A profile in the formats of other viewers: pprof, speedscope, collapsed stacks.

What those formats have no place for stays behind: maxima, distributions, findings, the trust
report. `deepcontext view` shows them.
"""

from deepcontext.ui.export.formats import FORMATS, Exported, Format, export

__all__ = ["FORMATS", "Exported", "Format", "export"]
