"""`python -m remote.reference`: the same command as `harness.pyz reference`."""

import sys

from remote.reference.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
