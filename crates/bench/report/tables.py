"""Figures and tables of raw runs.

An expression is one of Jinja over the fields of a run, `trace.cpu_seconds / samples * 1e6`; a field
that is missing makes it None. A key names runs that belong together: `path` keeps values in the
order they come in, `<path` sorts them, `path:a,b` lists them, and a base may differ in `~path`.
"""

import functools
import math
import re
import statistics

import jinja2

EXPRESSIONS = jinja2.Environment()


@functools.cache
def compiled(expression):
    return EXPRESSIONS.compile_expression(expression)


def value(run, expression):
    """The value of an expression; None where a field is missing."""
    try:
        return compiled(expression)(**run)
    except (jinja2.UndefinedError, TypeError):
        return None
    except ZeroDivisionError:
        return math.inf


def number(run, expression):
    """The same as a number: a list counts as its length."""
    found = value(run, expression)
    if isinstance(found, (list, bool)):
        return float(len(found) if isinstance(found, list) else found)
    return found if isinstance(found, (int, float)) else None


def numbers(runs, expression):
    found = (number(run, expression) for run in runs)
    return [each for each in found if each is not None]


def median(runs, expression):
    found = numbers(runs, expression)
    return statistics.median(found) if found else None


# Numbers as people read them.


def commas(number):
    return ("-" if number < -0.5 else "") + f"{abs(number):,.0f}"


def digits(number):
    """Three digits at least."""
    if number >= 1000:
        return commas(number)
    return f"{number:.{0 if number >= 100 else 1 if number >= 10 else 2 if number >= 1 else 3}f}"


def plain(found):
    """A number without needless zeros; texts as they are."""
    if found is None:
        return ""
    if isinstance(found, bool):
        return str(found).lower()
    if isinstance(found, float) and found.is_integer():
        return str(int(found))
    return str(found)


def shown(found):
    """As `plain`, whole numbers with commas."""
    if isinstance(found, (int, float)) and not isinstance(found, bool) and found % 1 == 0:
        return commas(found)
    return plain(found)


def few(number):
    return f"{number:.1f}" if abs(number) < 100 else commas(number)


def filled(template, run):
    """A text with `{expression}` replaced."""
    return re.sub(r"{([^}]+)}", lambda found: shown(value(run, found[1])), template)


def bracketed(found, show=commas, always=False):
    """Median, and smallest and largest where they differ."""
    middle, low, high = (show(of(found)) for of in (statistics.median, min, max))
    return middle if low == high and not always else f"{middle} ({low}-{high})"


# Groups of runs.


def path(key):
    return key.lstrip("<~").split(":")[0]


def order(runs, key):
    if ":" in key:
        return key.split(":")[1].split(",")
    values = []
    for run in runs:
        if (found := value(run, path(key))) not in values:
            values.append(found)
    return sorted(values, key=lambda found: (found is None, found)) if key[0] == "<" else values


def groups(runs, by):
    """Runs that agree in all keys together, in the order of the keys."""
    orders = [order(runs, key) for key in by]
    found = {}
    for run in runs:
        values = [value(run, path(key)) for key in by]
        places = tuple(
            known.index(each) if each in known else len(known) for known, each in zip(orders, values)
        )
        found.setdefault(places, []).append(run)
    return [found[places] for places in sorted(found)]


# Cells: what is made of the runs of a row, those of its base, and the expression of the column.


def text(runs, base, of):
    return filled(of, runs[0]) if "{" in of else plain(value(runs[0], of))


def label(*cell):
    return text(*cell)


def named(names):
    def show(runs, base, of):
        return names.get(plain(value(runs[0], of)), "")

    return show


def of_median(show):
    """A cell of the median; empty without one."""

    def cell(runs, base, of):
        middle = median(runs, of)
        return "" if middle is None else show(middle)

    return cell


def of_values(show):
    """A cell of all values."""

    def cell(runs, base, of):
        found = numbers(runs, of)
        return show(found) if found else ""

    return cell


def beside(show, is_shown_for_base=True):
    """A cell of the median and that of the base; empty without a base."""

    def cell(runs, base, of):
        middle, other = median(runs, of), median(base, of)
        if middle is None or other is None or (runs == base and not is_shown_for_base):
            return ""
        return show(middle, other)

    return cell


def fixed(places):
    return of_median(lambda middle: f"{middle:.{places}f}")


def pair(of_other):
    def cell(runs, base, of):
        return f"{median(runs, of):.0f} ({median(runs, of_other):.0f})"

    return cell


def ratio(of_other):
    def cell(runs, base, of):
        return f"{100 * median(runs, of) / median(runs, of_other):.0f} %"

    return cell


def with_share(places):
    return beside(lambda middle, base: f"{middle:.{places}f} ({100 * middle / base:.0f} %)")


def times(places):
    return beside(lambda middle, base: f"{middle / base:.{places}f}")


def extra(of_share):
    """What a late sample takes above one in order."""

    def cell(runs, base, of):
        share = number(runs[0], of_share)
        if not share:
            return ""
        show = beside(lambda middle, base: commas((middle - base) * 100 / share), False)
        return show(runs, base, of)

    return cell


SHOWS = {
    "text": text,
    "label": label,
    "named": named,
    "count": of_median(commas),
    "spread": of_values(bracketed),
    "largest": of_values(lambda found: f"{max(found):.0f}"),
    "digits": of_median(digits),
    "digits_spread": of_values(lambda found: bracketed(found, digits, always=True)),
    "fixed": fixed,
    "pair": pair,
    "ratio": ratio,
    "base_count": beside(lambda middle, base: commas(base)),
    "lost": beside(lambda middle, base: f"{100 * (1 - middle / base):.1f} %", False),
    "share": beside(lambda middle, base: f"{100 * middle / base:.1f} %"),
    "with_share": with_share,
    "times": times,
    "speedup": beside(lambda middle, base: f"{base / middle:.2f}"),
    "extra": extra,
}


def within(runs, part, key):
    """Those of `runs` that agree with `part` in a key."""
    return [run for run in runs if value(run, path(key)) == value(part[0], path(key))]


def table(runs, by, columns, across=None, base=None, needs="1"):
    """Groups of runs as rows, a column for each `[head, show, expression]`; "" without runs.

    A column whose head is a template stands once for each value of `across`, unless all of its cells
    are empty. `base` is a key and its value in the group that others are compared with, in the same
    row where the table goes across; `*` is the first group.
    """
    runs = [run for run in runs if value(run, needs) is not None]
    rows, parts = groups(runs, by), groups(runs, [across]) if across else []
    if not rows:
        return ""

    def base_of(row):
        if base is None:
            return []
        key, wanted = base
        if parts:
            wanted = value(parts[0][0], path(across)) if wanted == "*" else wanted
            return [run for run in row if plain(value(run, key)) == plain(wanted)]

        def fits(group):
            keys = [path(each) for each in by if each[0] != "~" and path(each) != key]
            agrees = all(value(row[0], each) == value(group[0], each) for each in keys)
            return agrees and wanted in ("*", plain(value(group[0], key)))

        return next(filter(fits, rows), [])

    bases = [base_of(row) for row in rows]
    lines = ["|"] * (len(rows) + 2)
    for head, show, of in columns:
        for part in parts if "{" in head else [None]:
            inside = rows if part is None else [within(row, part, across) for row in rows]
            cells = [show(row, of_base, of) if row else "" for row, of_base in zip(inside, bases)]
            if part is not None and not any(cells):
                continue
            lines[0] += f" {head if part is None else filled(head, part[0])} |".replace("  ", " ")
            is_left = show is text or show.__qualname__.startswith("named.")
            lines[1] += "---|" if is_left else "--:|"
            for at, cell in enumerate(cells):
                lines[at + 2] += f" {cell} |" if cell or part is None else " |"
    return "\n".join(lines)
