"""Trees for display, made from a profile's tree: frames left out, siblings merged, inverted.

Nothing here formats or draws. Start at `options.py` (what a view can show) and `top_down.py`.
"""
