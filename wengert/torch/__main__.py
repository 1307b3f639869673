"""``python -m wengert.torch SCRIPT ARGUMENTS`` runs a PyTorch script on Wengert."""

import sys

from wengert.torch.running import run

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("python -m wengert.torch SCRIPT ARGUMENTS")
    run(sys.argv[1], sys.argv[2:])
