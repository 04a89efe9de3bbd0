"""Start the profiler inside an unmodified program, before the program's first line.

`command.py` says how the program is started, `path/sitecustomize.py` is what that start runs
first, `bootstrap.py` starts the session and ends it. Nothing here knows what is measured.
"""
