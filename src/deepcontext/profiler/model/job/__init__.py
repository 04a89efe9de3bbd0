"""One tree of all ranks of a job: equal call paths joined, with the spread over ranks of each path.

A fold over profiles: `part_of` makes a partial result of one profile, `join` makes one of several,
`artifact` writes one as an ordinary profile and reads it back. Joining is associative and
commutative. Does not print, and knows only the interface `concurrent.futures.Executor`.
"""
