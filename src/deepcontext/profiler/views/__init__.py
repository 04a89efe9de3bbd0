"""What views can show or leave out: layers of frames, and pivots.

Nothing here formats or draws. The page's engine (`web/src/engine`) makes the trees.
"""
