"""Everything a person sees: command line, reports, pages. Imports down, is imported by nothing.

`report/`, `web/` and `export/` do not know each other; what two of them need lies here, beside them:
numbers and names as text (`format.py`, `labels.py`), measures, the texts of findings and of compiled
kernels.
"""
