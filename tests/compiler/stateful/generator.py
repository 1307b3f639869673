"""Drawing random programs."""

import random
from dataclasses import replace
from itertools import count

from tests.compiler.stateful.frames import CLIPS, FRAMES, INPUTS, OPTIMIZERS
from tests.compiler.stateful.pieces import PIECES
from tests.compiler.stateful.program import PLACES, Event, Part, Program

__all__ = ["drawn"]

#: Of which one is in each program more often than the others.
COMMON = ("global", "global", "object", "itself", "itself")
#: Checked at the first replay, never, and always.
DECORATORS = ("@wg.compile", "@wg.compile(check=0)", "@wg.compile(check=1)")
#: Several threads call the function at once.
THREADS = (
    "with ThreadPoolExecutor(2) as pool: "
    "results += pool.map(lambda z: step(CALL), [x0 * 0.5, x0, x0 * 2.0])"
)


def drawn(seed: int, pieces: int = 4, events: int = 7) -> Program:
    """The program of a seed, of at most so many pieces and events."""
    rng = random.Random(seed)
    frame = rng.choice(FRAMES)
    optimizer, clip = rng.choice(OPTIMIZERS), rng.choice(CLIPS)
    filled = [frame.lines.replace("CLIP", clip), frame.setup.replace("OPTIMIZER", optimizer)]
    frame = frame._replace(lines=filled[0], setup=filled[1])
    numbers = count()
    parts = []
    for piece in rng.sample(PIECES, rng.randint(1, pieces)):
        places = []
        for name, values in piece.holds.items():
            where = rng.choice(COMMON if rng.random() < 0.4 else tuple(PLACES))
            if where == "itself" and not frame.method:
                where = "global"
            places.append((name, where, rng.choice(values)))
        parts.append(Part(piece, next(numbers), tuple(places)))
    made = Program(frame, tuple(parts), (), seed, rng.random() < 0.3, rng.choice(DECORATORS))
    script = []
    changes = _changes(made, optimizer)
    usual = _arguments(made, rng)
    size = rng.randint(min(events, 4), events)
    while len(script) < size:
        if script and changes and rng.random() < 0.5:
            script.append(rng.choice(changes))
        if rng.random() < 0.3:
            usual = _arguments(made, rng)
        if made.pure and rng.random() < 0.15:
            script.append(Event(THREADS, {**usual, "x": "z"}))
        else:
            script.append(Event(rng.choice(frame.calls), usual))
    # Of three calls of one kind the last is no reason to record anew.
    script += [Event(frame.calls[0], usual)] * (3 if events > 2 else 2)
    return replace(made, events=tuple(script))


def _changes(made: Program, optimizer: str) -> list[Event]:
    found = []
    for part in made.parts:
        lines = list(part.piece.changes)
        for name, _, value in part.places:
            values = part.piece.holds[name]
            lines += [f"@{name} = {other}" for other in values if other != value]
        found += [Event(part.written(line, inside=False)) for line in lines]
    trains = [part.written(p, inside=False) for part in made.parts if (p := part.piece.trains)]
    for line in made.frame.changes:
        whole = line.replace("OPTIMIZER", optimizer)
        found.append(Event(whole.replace("TRAINS", " + ".join([*trains, "[spare]"]))))
    return found


def _arguments(made: Program, rng: random.Random) -> dict[str, str]:
    found = {"x": rng.choice(INPUTS)}
    for part in made.parts:
        if part.piece.argument:
            value = rng.choice(part.piece.argument)
            found[f"a{part.number}"] = value.replace("$", str(part.number))
    return found
