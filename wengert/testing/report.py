"""The report of ``python -m wengert check``: text for a terminal, and an HTML page."""

import html
import textwrap
from collections.abc import Sequence

from wengert.testing.checkup import Examination, Line

MARKS = {"ok": "ok", "wrong": "WRONG", "not checked": "not checked", "note": "note"}
#: Details that would make a longer line stand below it.
WIDTH = 100

STYLE = """
:root { color-scheme: light dark; --ok: #18794e; --wrong: #c6212f; --none: #8a6d00;
  --line: #8884; --soft: #8881; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .25rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .25rem; }
h1 code, h2 code { font-size: 1em; }
code, pre { font: 13px/1.45 ui-monospace, Consolas, monospace; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 4px; margin: .4rem 0;
  padding: .6rem .8rem; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
p.from { margin: 0 0 .5rem; opacity: .75; }
table { border-collapse: collapse; width: 100%; }
th, td { border-top: 1px solid var(--line); padding: .35rem .6rem; text-align: left;
  vertical-align: top; }
td:first-child { width: 17rem; }
td.status { width: 7rem; font-weight: 600; white-space: nowrap; }
.ok { color: var(--ok); } .wrong { color: var(--wrong); } .none, .note { color: var(--none); }
@media (prefers-color-scheme: dark) {
  :root { --ok: #4cc38a; --wrong: #ff6369; --none: #e0b83c; } }
"""


def summary(found: Sequence[Examination]) -> str:
    """Return one line: how many functions are right, wrong, and not checked."""
    counts = {
        status: sum(e.status == status for e in found) for status in ("ok", "wrong", "not checked")
    }
    names = ("right", "wrong", "not checked")
    return ", ".join(f"{n} {name}" for name, n in zip(names, counts.values(), strict=True))


def text(examination: Examination) -> str:
    """Return the report of one function for the terminal."""
    target = examination.target
    lines = [f"{target.name}: {MARKS[examination.status]}"]
    if target.source:
        lines.append(f"  inputs from {target.source}")
    for line in examination.lines:
        lines.append(f"  {MARKS[line.status]:12}{line.what}")
        body = textwrap.indent(line.told, " " * 14)
        if line.told:
            if "\n" in line.told or len(lines[-1]) + len(line.told) > WIDTH:
                lines.append(body)
            else:
                lines[-1] += f": {line.told}"
    return "\n".join(lines)


def page(title: str, about: str, found: Sequence[Examination]) -> str:
    """Return the report as HTML that needs no other file."""
    parts = [_overview(found), *(_section(i, e) for i, e in enumerate(found))]
    name = html.escape(title)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name}: derivatives</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>Derivatives of <code>{name}</code></h1>\n"
        f"<p>{html.escape(summary(found))}. {html.escape(about)}</p>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def _status(status: str) -> str:
    kind = "none" if status == "not checked" else status
    return f'<td class="status {kind}">{html.escape(MARKS[status])}</td>'


def _overview(found: Sequence[Examination]) -> str:
    rows = [
        f'<tr><td><a href="#f{i}"><code>{html.escape(e.target.name)}</code></a></td>'
        f"{_status(e.status)}<td>{html.escape(e.target.why_not or e.target.source)}</td></tr>"
        for i, e in enumerate(found)
    ]
    head = "<tr><th>function</th><th>derivatives</th><th>inputs from</th></tr>"
    return f"<table>\n{head}\n" + "\n".join(rows) + "\n</table>"


def _section(i: int, examination: Examination) -> str:
    target = examination.target
    source = f'<p class="from">Inputs from {html.escape(target.source)}.</p>\n'
    rows = "\n".join(_row(line) for line in examination.lines)
    return (
        f'<h2 id="f{i}"><code>{html.escape(target.name)}</code></h2>\n'
        f"{source if target.source else ''}<table>\n{rows}\n</table>"
    )


def _row(line: Line) -> str:
    told = html.escape(line.told)
    body = f"<pre>{told}</pre>" if "\n" in line.told else told
    return f"<tr><td>{html.escape(line.what)}</td>{_status(line.status)}<td>{body}</td></tr>"
