"""python -m tests.model [-q] [holds|mutant|limit|long] [WORD …]: what the search finds, of all cases or those so named.

Of what breaks it prints the shortest interleaving, unless -q. `long` is what the default run can't afford.
"""

import sys

from tests.model.case import Case, Mutant, searched
from tests.model.catalogue import HOLDS, LIMITS, LONG, MUTANTS
from tests.model.checker import MOST

MANY = 20 * MOST


def chosen(words: list[str]) -> list[Case]:
    """The cases that the words of a command name."""
    kinds = {"holds": HOLDS, "mutant": MUTANTS, "limit": LIMITS, "long": LONG}
    wanted = [case for kind, cases in kinds.items() if kind in words for case in cases] or [*HOLDS, *MUTANTS, *LIMITS]
    names = [word for word in words if word not in kinds]
    return [case for case in wanted if not names or any(word in str(case) for word in names)]


def main(arguments: list[str]) -> int:
    """1 where something is not as the catalogue says."""
    quiet, words = "-q" in arguments, [word for word in arguments if word != "-q"]
    wrong, seconds = 0, 0.0
    for case in chosen(words):
        found = searched(case, most=MANY)
        seconds += found.seconds
        mutant = isinstance(case, Mutant)
        as_said = not found.holds and found.complete if mutant else found.holds
        wrong += not as_said
        verdict = "holds " if found.holds else "breaks" if found.complete else "?     "
        said = "" if as_said else "   <- not what the catalogue says"
        sys.stdout.write(f"{verdict}  {case}  [{found.states} states, {found.seconds:.1f} s]{said}\n")
        if found.sentence:
            sys.stdout.write(f"        {found.sentence}\n")
            for number, label in enumerate(() if quiet else found.trace, 1):
                sys.stdout.write(f"        {number:3} {label}\n")
    sys.stdout.write(f"{wrong} not as said, {seconds:.0f} s\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
