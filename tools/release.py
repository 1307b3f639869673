"""Make a release: build it, install what was built in fresh environments, and test it there.

    python tools/release.py                        # a rehearsal
    python tools/release.py --tag v0.3.0 --output dist

It needs Python with `venv` and `pip` alone, and changes nothing in the checkout. With ``--tag``
the tag, the version of the package and the newest heading of CHANGELOG.md have to agree.
CONTRIBUTING.md says what to do before and after.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: What an installed package has to do, without any extra, in a directory without the sources.
TRIAL = """
import sys
import wengert as wg

x = wg.tensor([1.0, 2.0, 3.0], requires_grad=True)
(x**3).sum().backward()
assert x.grad.numpy().tolist() == [3.0, 12.0, 27.0], x.grad
step = wg.compile(wg.grad(lambda x: wg.sum(wg.sin(x))))
for _ in range(3):
    assert abs(float(step(wg.asarray(0.0))) - 1) < 1e-15
assert wg.__version__ == sys.argv[1], wg.__version__
print(wg.__version__, "from", wg.__file__)
"""


def main() -> None:
    """Build and try what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tag", help="the tag, vX.Y.Z, that has to agree with the version")
    parser.add_argument("--output", type=Path, help="where to put the wheel and the sdist")
    parser.add_argument("--tests", action="store_true", help="also run the quick tests")
    options = parser.parse_args()
    version = agreed(options.tag)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        built = build(work, version)
        for archive in built:
            tried(work / f"{archive.suffix[1:]}-environment", archive, version)
        if options.tests:
            tested(work, built[1])
        if options.output:
            options.output.mkdir(parents=True, exist_ok=True)
            for archive in built:
                shutil.copy(archive, options.output)
    print(f"Wengert {version}: {', '.join(archive.name for archive in built)} are good")


def agreed(tag: str | None) -> str:
    """The version, of which code, changelog and tag have to tell the same."""
    code = (ROOT / "wengert" / "__init__.py").read_text()
    version = re.search(r'^__version__ = "(.+)"$', code, re.MULTILINE)
    assert version, "wengert/__init__.py has no line with __version__"
    if tag is None:
        return version[1]
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    found = {"tag": tag.removeprefix("v"), "code": version[1], "CHANGELOG.md": newest and newest[1]}
    if len(set(found.values())) > 1:
        sys.exit(f"the version differs: {found}")
    return version[1]


def run(*command: str | Path, cwd: Path | None = None) -> None:
    """Show a command and run it."""
    print("+", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, cwd=cwd)


def environment(at: Path) -> Path:
    """A fresh environment's Python."""
    venv.create(at, with_pip=True)
    return at / ("Scripts" if sys.platform == "win32" else "bin") / "python"


def build(work: Path, version: str) -> tuple[Path, Path]:
    """The wheel, built from the sdist as users' pip would, and the sdist."""
    python, made = environment(work / "build-environment"), work / "dist"
    run(python, "-m", "pip", "install", "-q", "build")
    run(python, "-m", "build", "--outdir", made, ROOT)
    wheel, sdist = made / f"wengert-{version}-py3-none-any.whl", made / f"wengert-{version}.tar.gz"
    if {*made.iterdir()} != {wheel, sdist}:
        sys.exit(f"built {sorted(path.name for path in made.iterdir())}")
    return wheel, sdist


def tried(at: Path, archive: Path, version: str) -> None:
    """Install an archive alone, and use it where its sources are not."""
    python = environment(at)
    run(python, "-m", "pip", "install", "-q", archive)
    run(python, "-I", "-c", TRIAL, version, cwd=at)


def tested(work: Path, sdist: Path) -> None:
    """Run the tests that the sdist has."""
    python = environment(work / "test-environment")
    shutil.unpack_archive(sdist, work / "sources")
    (sources,) = (work / "sources").iterdir()
    run(python, "-m", "pip", "install", "-q", f"{sources}[test]")
    run(python, "-m", "pytest", "-q", "-n", "auto", cwd=sources)


if __name__ == "__main__":
    main()
