"""The answers of a report, each declared once as a table: what its rows are, and the columns to show.

Rows have the keys of `report --json` (docs/reference/report-json.md), which are therefore made here. Does
not print: `deepcontext.ui.report` lays tables out for a terminal.
"""
