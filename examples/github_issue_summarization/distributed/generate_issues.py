"""Generates GitHub issues: a csv file, or a zip archive of one, with the columns issue_url,
issue_title and body.

    python generate_issues.py --output=github_issues.zip --rows=5000

Titles and bodies are sentences of templates. The body has what the title says in other words,
between sentences that do not matter, so a model can learn to write the title. The same seed gives
the same file.
"""

import argparse
import csv
import io
import os
import random
import zipfile
from typing import Dict, List, Tuple

FILE = "github_issues.csv"
COLUMNS = ("issue_url", "issue_title", "body")
PROJECTS = ("acme/gateway", "acme/notebook", "orbit/scheduler", "orbit/console", "tide/client",
            "tide/server", "maple/editor", "maple/themes")
PARTS = ("login page", "search box", "file upload", "settings dialog", "export button",
         "command line", "dashboard", "http client", "config parser", "cache", "installer",
         "log viewer", "date picker", "build script", "job queue", "table view")
SYSTEMS = ("windows", "macos", "ubuntu", "debian", "android", "fedora")
VERSIONS = ("1.2.0", "1.4.3", "2.0.1", "2.1.0", "3.0.0", "3.2.5")
ERRORS = ("null pointer", "timeout", "out of memory", "permission denied", "key error",
          "assertion failed", "connection reset", "stack overflow")
LANGUAGES = ("german", "japanese", "spanish", "french", "korean", "polish")

# Kinds of issues: titles, and the sentences of the body that say the same.
KINDS: Dict[str, Tuple[List[str], List[str]]] = {
    "crash": (
        ["{part} crashes with {error} on {system}", "crash in {part} on {system} : {error}"],
        ["since I updated, the {part} closes immediately on {system}. The last line of the log "
         "says {error}.",
         "on {system} the program stops as soon as I open the {part}. I get {error} and a stack "
         "trace.",
         "the {part} does not start on my {system} machine any more, it ends with {error}."]),
    "feature": (
        ["add dark mode to {part}", "feature request : dark mode for {part}"],
        ["it would be great if the {part} had darker colors at night.",
         "I would like to use the {part} with a black background, because white hurts my eyes."]),
    "language": (
        ["translate {part} to {language}", "{language} translation of {part}"],
        ["all texts of the {part} are in English. Our users speak {language} and cannot read them.",
         "I can help to bring {language} texts to the {part}, which file do I have to change?"]),
    "docs": (
        ["document how to configure {part}", "missing documentation of {part}"],
        ["I could not find a page that explains the options of the {part}.",
         "the readme has no word about the {part}. How do I change its options?"]),
    "slow": (
        ["{part} is slow on {system}", "bad performance of {part} on {system}"],
        ["with a few thousand entries the {part} needs ten seconds to react. This is {system}.",
         "the {part} takes forever on {system} and uses a whole core in the meantime."]),
    "tests": (
        ["flaky test of {part} on {system}", "test of {part} fails on {system} sometimes"],
        ["one of five runs on the {system} machine is red, always in the test of the {part}.",
         "please have a look at the tests of the {part}: they are random on {system}."]),
    "upgrade": (
        ["{part} broken after upgrade to {version}", "upgrade to {version} breaks {part}"],
        ["with {version} the {part} does nothing at all. The release before was fine.",
         "after I installed {version} the {part} stopped working, I had to go back."]),
}
BEFORE = ("Hello,", "Hi all,", "Thanks for this great project!", "First of all thank you.",
          "I searched the open issues and found nothing.", "Not sure if this is the right place,",
          "")
AFTER = ("Expected behavior: it works as the page says.", "I can send a pull request.",
         "Let me know if you need more details.", "Is there a workaround?",
         "Steps to reproduce: see above, it happens every time.", "Any help is welcome.",
         "This worked last week.", "My colleague has the same problem.", "")


def issue(number: int, random_source: random.Random) -> Tuple[str, str, str]:
    """The columns of one issue."""
    pick = random_source.choice
    titles, sentences = KINDS[pick(sorted(KINDS))]
    values = {"part": pick(PARTS), "system": pick(SYSTEMS), "error": pick(ERRORS),
              "language": pick(LANGUAGES), "version": pick(VERSIONS)}
    said = pick(sentences).format(**values)
    body = [pick(BEFORE), said, pick(AFTER),
            f"Version: {values['version']}, {values['system']}.", pick(AFTER)]
    url = f"https://github.com/{pick(PROJECTS)}/issues/{number}"
    return url, pick(titles).format(**values), "\n".join(line for line in body if line)


def table(rows: int, seed: int) -> str:
    """The text of the csv file."""
    random_source = random.Random(seed)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(issue(number, random_source) for number in range(1, rows + 1))
    return text.getvalue()


def write(path: str, rows: int, seed: int) -> None:
    """Writes the csv file, or an archive if the name ends with .zip. Other processes see the whole
    file or none."""
    text = table(rows, seed)
    partial = f"{path}.partial"
    if path.endswith(".zip"):
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            # Without a date the archive would differ from run to run.
            archive.writestr(zipfile.ZipInfo(FILE, (2000, 1, 1, 0, 0, 0)), text,
                             zipfile.ZIP_DEFLATED)
    else:
        with open(partial, "w", encoding="utf-8", newline="") as out:
            out.write(text)
    os.replace(partial, path)


def main() -> None:
    parser = argparse.ArgumentParser(description="Generates GitHub issues.")
    parser.add_argument("--output", required=True, help="a file that ends with .csv or .zip")
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if not arguments.output.endswith((".csv", ".zip")):
        parser.error(f"--output={arguments.output}: must end with .csv or .zip")
    os.makedirs(os.path.dirname(arguments.output) or ".", exist_ok=True)
    write(arguments.output, arguments.rows, arguments.seed)
    print(f"{arguments.rows} issues in {arguments.output}")


if __name__ == "__main__":
    main()
