"""Families of functions and classes whose source is PyTorch's of the same name."""

from collections.abc import Callable

from wengert.tape.families import Family


def pytorchs(space: str) -> Callable[[str], Family]:
    """What makes a family of text, in which notes come last, and of a source in ``torch``."""

    def family(text: str) -> Family:
        title = "" if "\nNotes\n" in text else "Notes\n-----\n"
        return Family(f"{text.rstrip()}\n\n{title}PyTorch: ``torch.{space}.$name``.")

    return family


of_functions = pytorchs("nn.functional")
of_layers = pytorchs("nn")
#: Of functions whose docstrings have nothing else in common.
PYTORCH = of_functions("")
