"""What a profile holds: tree, frames, metrics, sections; loading, merging and querying it.

Answers no question about a profile: those are in `summaries`.
"""
