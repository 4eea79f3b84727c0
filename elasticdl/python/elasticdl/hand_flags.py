"""What the flags of `master.main` and `worker.main` have in common."""

from __future__ import annotations

import argparse
import difflib
import os
from typing import NoReturn, Sequence

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
# In the original, `tf_example` parsed the records and `bytes` did not. Here the `feed` of the model
# gets the records as bytes and parses them, whatever the flag is.
CODECS = ("tf_example", "bytes")
DEFAULT_PORT = 50001


class FlagParser(argparse.ArgumentParser):
    """Parses --flag=value and --flag value. An error is one line, and exits with 2. The error for
    an unknown flag names the nearest one."""

    def __init__(self, module: str, description: str) -> None:
        super().__init__(prog=f"python -m {module}", allow_abbrev=False, description=description,
                         formatter_class=argparse.RawDescriptionHelpFormatter)
        self.add_argument("--model_file", metavar="PATH",
                          help="The file of the model: DIR/FILE.py with the function custom_model.")
        self.add_argument("--codec_type", choices=CODECS, default=CODECS[0],
                          help="For old scripts: the feed of the model parses the records.")
        self.add_argument("--token_file", metavar="PATH", default="",
                          help="A file with a token. Workers must then send it to attach.")
        self.add_argument("--log_level", type=str.upper, choices=LEVELS,
                          help="Messages below this level are not logged.")

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        known, unknown = self.parse_known_args(arguments)
        for word in unknown:
            if not word.startswith("--"):
                self.error(f"'{word}' is not a flag: write --flag=value")
            name = word[2:].split("=")[0]
            names = [option[2:] for option in self._option_string_actions if option[:2] == "--"]
            nearest = difflib.get_close_matches(name, names, n=2, cutoff=0.5)
            fix = " or ".join(f"--{other}" for other in nearest)
            self.error(f"there is no flag --{name}" + (f"; did you mean {fix}?" if fix else ""))
        return known

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; --help lists the flags\n")


def model_of_file(path: str) -> tuple[str, str]:
    """--model_zoo and the module of --model_def for a file: ("DIR", "FILE") of DIR/FILE.py.
    Raises ValueError with a message for users."""
    folder, name = os.path.split(path)
    stem, suffix = os.path.splitext(name)
    if suffix != ".py" or not stem.isidentifier():
        raise ValueError(f"--model_file={path}: expected a Python file, for example "
                         "elasticdl/python/examples/mnist_functional_api.py")
    if not os.path.isfile(path):
        raise ValueError(f"--model_file={path}: there is no such file in {os.getcwd()}")
    return folder or ".", stem
