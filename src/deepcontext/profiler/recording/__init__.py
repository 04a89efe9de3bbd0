"""Recording: the session, its options, the interface of collectors, the launcher's part in the program.

Runs inside the program under test: standard library and native core only, no numpy, no framework.
Names no collector; the facade passes the collectors.
"""
