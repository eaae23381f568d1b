"""The lines that benchmarks print, one of JSON for each figure: what is in one, and which limits it keeps (README.md, "Lines")."""

import json

# A limit's key in a line, what it is about, and whether it may be at most or at least that.
LIMITS = (("limit", "value", "at_most"), ("at_least", "value", "at_least"), ("ratio_limit", "ratio", "at_most"))

missed = []  # names of those that `say` printed beyond a limit


def limits_of(line):
    """Each limit of a line: its key, what it is about, at most or at least, its number, and whether it is kept."""
    for key, of, bound in LIMITS:
        if key in line:
            kept = line[of] <= line[key] if bound == "at_most" else line[of] >= line[key]
            yield key, of, bound, line[key], kept


def is_kept(line):
    return all(kept for *_, kept in limits_of(line))


def say(name, value, unit, against=None, limit=None, peer_value=None, **more):
    """Prints a figure; `against` says in words what it is compared with, `peer_value` is that of the same run in the same unit."""
    line = {"name": name, "value": value, "unit": unit, **more}
    if against is not None:
        line["peer"] = against
    if peer_value:
        line.update(peer_value=peer_value, ratio=value / peer_value)
    else:
        line.pop("ratio_limit", None)  # nothing to compare with, or too little of it to be measured
    if limit is not None:
        line["limit"] = limit
    if not is_kept(line):
        missed.append(name)
    print(json.dumps({key: round(each, 3) if isinstance(each, float) else each for key, each in line.items()}), flush=True)
