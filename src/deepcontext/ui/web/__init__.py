"""The page in a browser: `deepcontext view`. What it shows is computed here; the page draws."""
