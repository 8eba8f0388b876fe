"""What the supervisor takes from the arguments of `runworker`: how many processes, and names for them."""

from collections.abc import Sequence

MOST_PROCESSES = 64
OPTION, SHORTEST = "--processes", "--pr"  # argparse takes any beginning that fits one option alone
NAME, SHORTEST_NAME = "--name", "--na"
ASK_DJANGO = ("-h", "--help", "--version")  # answered by the command itself, without a worker


def parse_processes(text: str) -> int:
    """A number of processes. Raises ValueError with a sentence for people."""
    if text.isascii() and text.isdigit() and len(text) < 5 and 1 <= int(text) <= MOST_PROCESSES:
        return int(text)
    from jobs.speech import _  # the catalogue is opened only when there is something to say

    raise ValueError(
        _("%(text)s is not a number of processes: 1 to %(most)d are possible") % {"text": text, "most": MOST_PROCESSES}
    )


def split(arguments: Sequence[str]) -> tuple[int, list[str]]:
    """The number of processes, and the other arguments as they are. Raises ValueError as above."""
    count, others, left = 1, list[str](), list(arguments)
    while left:
        argument = left.pop(0)
        name, equals, value = argument.partition("=")
        if not _is(name, OPTION, SHORTEST):
            others.append(argument)
        elif equals:
            count = parse_processes(value)
        else:
            count = parse_processes(left.pop(0) if left else "")
    return count, others


def of_process(arguments: Sequence[str], number: int) -> list[str]:
    """The arguments of one of several workers: a name that was given gets "-1", "-2" …"""
    named, found = False, list[str]()
    for argument in arguments:
        name, equals, _value = argument.partition("=")
        if named or (equals and _is(name, NAME, SHORTEST_NAME)):
            found.append(f"{argument}-{number}")
            named = False
        else:
            found.append(argument)
            named = _is(name, NAME, SHORTEST_NAME)
    return found


def _is(word: str, option: str, shortest: str) -> bool:
    return option.startswith(word) and word.startswith(shortest)
