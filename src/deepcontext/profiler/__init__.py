"""The profile: calling context tree, metrics, session and profile file."""
