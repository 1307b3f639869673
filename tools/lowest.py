"""Print the lowest versions that pyproject.toml declares for the tests, as requirements of pip."""

import re
import tomllib
from pathlib import Path


def lowest(requirement: str) -> str:
    """A requirement of the version after ``>=`` alone; its extras and its marker stay."""
    name, _, rest = requirement.partition(">=")
    version, semicolon, marker = rest.partition(";")
    return f"{name}=={re.split('[, ]', version)[0]}{semicolon}{marker}"


def main() -> None:
    """Print them, one a line."""
    project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())
    about = project["project"]
    for requirement in [*about["dependencies"], *about["optional-dependencies"]["test"]]:
        print(lowest(requirement))


if __name__ == "__main__":
    main()
