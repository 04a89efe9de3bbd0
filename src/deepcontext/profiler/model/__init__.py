"""What a profile holds: tree, frames, metrics, sections; loading, merging and querying it.

No question of its own: those are `summaries`'.
"""
