"""Profiles as tables of an embedded database (DuckDB): for `query`, and for `export --format parquet`.

Needs the extra `sql`. Does not print anything. `docs/reference/tables.md` documents the columns.
"""
