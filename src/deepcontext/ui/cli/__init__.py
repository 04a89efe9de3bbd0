"""The command line: `app.py` finds the sub-command, every other file is one of them or a part."""
