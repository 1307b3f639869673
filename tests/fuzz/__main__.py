"""Run many random programs: ``python -m tests.fuzz --programs 100000 --seed 0 --jobs 2``.

Each is run by Wengert on NumPy in reverse and forward mode and compared with PyTorch; a part is run
on other backends, too. Programs that differ are printed as snippets to paste, the shortest first.
"""

import argparse
import faulthandler
import re
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.fuzz.run import Finding, block

BLOCK = 250


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--backends", default="array_api_strict,torch", help="beside NumPy")
    parser.add_argument("--every", type=int, default=10, help="which part runs on these")
    parser.add_argument("--no-oracle", action="store_true", help="do not compare with PyTorch")
    parser.add_argument("--no-forward", action="store_true", help="reverse mode alone")
    parser.add_argument("--avoid", default="", help="recipes to leave out")
    parser.add_argument("--show", type=int, default=3, help="snippets to print of each kind")
    chosen = parser.parse_args(arguments)
    options = {
        "oracle": not chosen.no_oracle,
        "forward": not chosen.no_forward,
        "avoid": frozenset(filter(None, chosen.avoid.split(","))),
        "backends": tuple(filter(None, chosen.backends.split(","))),
    }
    started = time.perf_counter()
    last = chosen.seed + chosen.programs
    blocks = [range(s, min(s + BLOCK, last)) for s in range(chosen.seed, last, BLOCK)]
    counts: Counter[str] = Counter()
    found: list[Finding] = []
    pool = ProcessPoolExecutor(
        chosen.jobs, mp_context=get_context("spawn"), initializer=faulthandler.enable
    )
    with pool:
        jobs = [pool.submit(block, seeds, chosen.every, dict(options)) for seeds in blocks]
        for i, job in enumerate(jobs, 1):
            more, findings = job.result()
            counts.update(more)
            found += findings
            for finding in findings:  # at once, since a library that crashes takes all with it
                print(f"# -- {finding.kind}: {finding.message[:300]}", file=sys.stderr)
                print(finding.snippet, file=sys.stderr)
            if i % 20 == 0:
                print(f"... {counts['programs']} programs, {len(found)} findings", file=sys.stderr)
    spent = time.perf_counter() - started
    kinds = Counter(finding.kind for finding in found)
    for kind in kinds:
        alike = sorted((f for f in found if f.kind == kind), key=lambda f: len(f.snippet))
        for finding in alike[: chosen.show]:
            print(f"# -- {kind}: {finding.message[:2000]}\n{finding.snippet}")
    print(
        f"{counts['programs']} programs of {counts['statements']} statements in {spent:.0f} s "
        f"({counts['programs'] / spent:.0f}/s): {len(found)} findings"
        + "".join(f", {n} × {kind}" for kind, n in kinds.items())
        + "".join(f"; {n} {kind}" for kind, n in sorted(counts.items()) if re.search("[ -]", kind))
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
