"""The command line: `app.py` finds the sub-command; every other file is a sub-command or a helper."""
