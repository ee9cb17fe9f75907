"""`python -m localexpert`: the command line without the installed script."""

import sys

from localexpert.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
