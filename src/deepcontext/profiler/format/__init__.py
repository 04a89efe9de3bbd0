"""What recording and reading share: frames, metrics, the file's schema, its wire format, its writing.

Standard library only, because recording runs inside the program under test. No session, no tree.
"""
