"""``python -m backend_check LIBRARY``; see `backend_check.command`."""

import sys

from backend_check.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
