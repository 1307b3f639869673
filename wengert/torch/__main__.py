"""``python -m wengert.torch SCRIPT ARGUMENTS`` runs a PyTorch script on Wengert."""

from wengert.running import main

if __name__ == "__main__":
    main("torch")
