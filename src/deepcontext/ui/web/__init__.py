"""The page in a browser: `deepcontext view`. It computes what it shows from columns that this part sends."""
