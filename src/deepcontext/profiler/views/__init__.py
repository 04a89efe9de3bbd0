"""Trees made from a profile's tree for looking at: frames left out, siblings merged, turned round.

Nothing here formats or draws. Start at `options.py` (what can be asked for) and `top_down.py`.
"""
