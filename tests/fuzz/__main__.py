"""Run many random programs: ``python -m tests.fuzz --programs 100000 --seed 0 --jobs 2``.

Each is run by Wengert on NumPy in reverse and forward mode and compared with PyTorch. The shortest
program that differs is printed.
"""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.fuzz.programs import examined


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first job")
    parser.add_argument("--jobs", type=int, default=1)
    chosen = parser.parse_args(arguments)
    seeds = range(chosen.seed, chosen.seed + chosen.jobs)
    with ProcessPoolExecutor(chosen.jobs, mp_context=get_context("spawn")) as pool:
        found = [*pool.map(examined, [chosen.programs // chosen.jobs] * chosen.jobs, seeds)]
    print("\n".join(filter(None, found)) or f"{chosen.programs} programs: all agree")
    return 1 if any(found) else 0


if __name__ == "__main__":
    sys.exit(main())
