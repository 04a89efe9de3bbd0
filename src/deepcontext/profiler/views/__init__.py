"""What views can show or leave out: layers of frames.

Nothing here formats or draws. The page's engine (`web/src/engine`) makes the trees.
"""
