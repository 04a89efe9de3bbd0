"""`python -m deepcontext`."""

import sys

from deepcontext.ui.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
