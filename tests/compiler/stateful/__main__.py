"""Run many random programs: ``python -m tests.compiler.stateful --programs 20000 --jobs 2``.

Each is run eagerly and compiled. Findings are printed as they come, as snippets to paste.
"""

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.compiler.stateful.judge import judge_all

BLOCK = 100


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.compiler.stateful", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--jobs", type=int, default=1)
    chosen = parser.parse_args(arguments)
    started = time.perf_counter()
    last = chosen.seed + chosen.programs
    blocks = [range(s, min(s + BLOCK, last)) for s in range(chosen.seed, last, BLOCK)]
    kinds: Counter[str] = Counter()
    pool = ProcessPoolExecutor(chosen.jobs, mp_context=get_context("spawn"))
    with pool:
        jobs = [pool.submit(judge_all, seeds) for seeds in blocks]
        for job in jobs:
            for kind, message, snippet in job.result():
                kinds[kind] += 1
                print(f"# -- {kind}, {message[:1500]}\n{snippet}\n", flush=True)
    spent = time.perf_counter() - started
    said = ", ".join(f"{n} × {kind}" for kind, n in kinds.items()) or "no findings"
    print(f"{chosen.programs} programs in {spent:.0f} s: {said}")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
