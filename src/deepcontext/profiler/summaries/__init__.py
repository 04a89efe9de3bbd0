"""Questions asked of a profile, one question per file: lines, operators, phases, memory, ...

A summary returns data; it neither formats nor prints, and gives no advice (`analyzers` do).
"""
