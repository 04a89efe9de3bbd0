"""Files of other profilers, read into profiles: one format a file or folder, each a `Reader`.

Knows `format/` and `model/` only. Invariants: a format is recognised by the content of a file, never by its
name; nothing in a file is executed; what a format cannot say is named in the trust report and is not shown
as zero.
"""
