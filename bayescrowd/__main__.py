"""`python -m bayescrowd` is the command `bayescrowd`."""

import sys

from bayescrowd.cli import main

if __name__ == "__main__":
    sys.exit(main())
