"""Questions to a profile, one a file: lines, operators, modules, phases, steps, memory, ranks, ...

A summary returns data; it neither formats nor prints, and gives no advice (`analyzers` do).
"""
