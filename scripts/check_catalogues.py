"""Are the message catalogues what the code says? `--write` brings them up to date, else they are checked.

Checked: each `.po` holds exactly the messages of the code, each is translated and not fuzzy, each `.mo` is
what its `.po` gives. In English a message is its own text, filled in here. Needs gettext's tools.
"""

import gettext
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCALE = ROOT / "locale"
EXTRACT = [
    "makemessages",
    "--all",
    "--no-wrap",
    "--add-location",
    "file",
    "--no-obsolete",
    "--ignore",
    "tests/*",
]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", ".turno", "__pycache__", ".*_cache", "node_modules", "vendor")
MESSAGE = re.compile(r'^msgid (".*"(?:\n".*")*)', re.M)
DATE = re.compile(r'^"POT-Creation-Date:.*\n', re.M)


def extract(project: Path) -> None:
    """Run makemessages in a copy of the project, for each domain that has a catalogue; fill in the English ones."""
    for domain in sorted({path.stem for path in (project / "locale").glob("*/LC_MESSAGES/*.po")}):
        command = [sys.executable, "manage.py", *EXTRACT, "--domain", domain]
        subprocess.run(command, cwd=project, check=True, capture_output=True, text=True)
        english = project / "locale/en/LC_MESSAGES" / f"{domain}.po"
        if english.exists():
            for command in (
                ["msgattrib", "--clear-fuzzy", "--clear-previous", "--empty", "--output-file", english, english],
                ["msgen", "--no-wrap", "--output-file", english, english],
            ):
                subprocess.run(command, check=True, capture_output=True, text=True)
    for po in (project / "locale").glob("*/LC_MESSAGES/*.po"):  # the instant of a run is no change
        po.write_text(DATE.sub("", po.read_text("utf-8"), count=1), "utf-8")


def compile_catalogue(po: Path, mo: Path) -> None:
    """Make the `.mo` of a `.po`, with the checks of msgfmt."""
    subprocess.run(["msgfmt", "--check-format", "-o", mo, po], check=True, capture_output=True, text=True)


def entries(mo: Path) -> dict[object, str]:
    """The messages of a compiled catalogue without its header, whatever version of msgfmt made it."""
    with mo.open("rb") as stream:
        catalogue = dict(gettext.GNUTranslations(stream)._catalog)  # type: ignore[attr-defined]
    catalogue.pop("", None)
    return catalogue


def messages(po: Path) -> set[str]:
    """The messages of a `.po` with their translations, without the places they are used in."""
    blocks = po.read_text("utf-8").split("\n\n")
    return {"\n".join(line for line in block.splitlines() if not line.startswith("#")) for block in blocks}


def selected(po: Path, what: str) -> list[str]:
    """The entries of a catalogue that are untranslated or fuzzy."""
    done = subprocess.run(["msgattrib", what, "--no-obsolete", po], check=True, capture_output=True, text=True)
    texts = ("".join(re.findall(r'"(.*)"', found)) for found in MESSAGE.findall(done.stdout))
    return [text for text in texts if text]  # without the header


def problems(po: Path, fresh: Path, scratch: Path) -> list[str]:
    """What is wrong with one catalogue."""
    name, found = po.relative_to(ROOT), []
    if messages(po) != messages(fresh):
        found.append(f"{name}: not what the code says (run scripts/check_catalogues.py --write)")
    for what, word in (("--untranslated", "not translated"), ("--only-fuzzy", "fuzzy")):
        found += [f"{name}: {word}: {line}" for line in selected(po, what)]
    compile_catalogue(po, scratch)
    mo = po.with_suffix(".mo")
    if not mo.exists() or entries(mo) != entries(scratch):
        found.append(f"{mo.relative_to(ROOT)}: not what its .po gives (run scripts/check_catalogues.py --write)")
    return found


def main() -> int:
    """Check or write; exit code 1 with a line a problem."""
    if shutil.which("msgfmt") is None:
        print("gettext is missing: install the package gettext")
        return 1
    catalogues = sorted(LOCALE.glob("*/LC_MESSAGES/*.po"))
    if not catalogues:
        print("there is no catalogue below locale/")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        copy, scratch = Path(folder) / "project", Path(folder) / "scratch.mo"
        shutil.copytree(ROOT, copy, ignore=LEFT_OUT, symlinks=True)
        try:
            extract(copy)
            if "--write" in sys.argv[1:]:
                for po in catalogues:
                    shutil.copyfile(copy / po.relative_to(ROOT), po)
                    compile_catalogue(po, po.with_suffix(".mo"))
                return 0
            found = [line for po in catalogues for line in problems(po, copy / po.relative_to(ROOT), scratch)]
        except subprocess.CalledProcessError as error:
            found = [f"{error.cmd[:3]}: {error.stderr.strip()}"]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
