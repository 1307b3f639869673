"""``python -m wengert``: the version, the backends found, and which one is selected and why.

``python -m wengert check module[:function]`` checks derivatives; see `wengert.testing.command`.
"""

import importlib
import platform
import sys
from collections.abc import Sequence

from wengert import __version__
from wengert.backends import BackendError, builtin_backends, get_backend, plugin_backends, selection
from wengert.backends.registry import KNOWN


def _row(name: str, installed: bool) -> tuple[str, str, str]:
    """A backend's name, its library's version, and its devices or what is wrong."""
    if not installed:
        return name, "-", f"not installed; install {KNOWN[name]}"
    try:
        backend = get_backend(name)
        module = name if name in KNOWN else backend.module
        of = [importlib.import_module(each) for each in (module, module.partition(".")[0])]
        version = next((x.__version__ for x in of if hasattr(x, "__version__")), "?")
    except Exception as error:  # a broken library is a line of the report, and not its end
        return name, "?", f"cannot be imported: {error}"
    try:
        devices = ", ".join(backend.device_name(device) for device in backend.devices())
    except Exception as error:
        devices = f"no devices: {error}"
    return name, version, devices


#: Commands by name, with the module of each and the extra that the module needs.
COMMANDS = {"check": ("wengert.testing.command", "testing")}
#: What to run in place of a command that has gone.
GONE = {"check-backend": "run python -m backend_check LIBRARY in a clone of Wengert's repository"}


def main(arguments: Sequence[str]) -> int:
    """Carry out a command, or without one print the report; return the exit status."""
    if not arguments:
        return report()
    command, *rest = arguments
    if command not in COMMANDS:
        usage = f"usage: python -m wengert [{{{','.join(COMMANDS)}}} ...]"
        if command in ("-h", "--help"):
            print(usage)
            return 0
        instead = f"; {GONE[command]}" if command in GONE else ""
        print(f"{usage}\nerror: there is no command {command!r}{instead}", file=sys.stderr)
        return 2
    module, extra = COMMANDS[command]
    try:
        run = importlib.import_module(module).main
    except ImportError as error:
        print(
            f"error: python -m wengert {command} needs wengert[{extra}] ({error})", file=sys.stderr
        )
        return 2
    status: int = run(rest)
    return status


def report() -> int:
    """Print the report; return 1 if the selected backend cannot be used."""
    print(f"wengert {__version__}, Python {platform.python_version()}, {platform.platform()}\n")
    found = builtin_backends() | dict.fromkeys(plugin_backends(), True)
    rows = [("backend", "version", "devices"), *(_row(*each) for each in found.items())]
    first, second = (max(len(row[i]) for row in rows) for i in (0, 1))
    for name, version, devices in rows:
        print(f"{name:{first}}  {version:{second}}  {devices}")
    try:
        chosen = selection()
    except BackendError as error:
        print(f"\nerror: {error}", file=sys.stderr)
        return 1
    where = "" if chosen.device is None else f", device {chosen.backend.device_name(chosen.device)}"
    print(f"\nselected: {chosen.backend.name}{where} ({chosen.reason})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
