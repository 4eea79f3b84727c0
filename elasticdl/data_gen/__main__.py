"""The command line: python -m elasticdl.data_gen NAME OUT [flags]."""

import argparse
import importlib
import sys
from typing import List, Optional

NAMES = ("mnist", "iris", "criteo", "frappe", "census", "heart", "cifar10")


def fraction(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most 1")
    return value


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def parse_args(arguments: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m elasticdl.data_gen",
        description="Generates a dataset of the model zoo: OUT/train and OUT/test.")
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("out", help="the folder of the dataset; older files of it are replaced")
    parser.add_argument("--fraction", type=fraction, default=1.0,
                        help="the part of the dataset to generate, above 0 and at most 1")
    parser.add_argument("--records_per_file", type=positive, default=16384)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--compression", choices=("none", "gzip"), default="none")
    return parser.parse_args(arguments)


def main(arguments: Optional[List[str]] = None) -> int:
    args = parse_args(arguments)
    try:
        from elasticdl.data_gen.output import Options

        dataset = importlib.import_module(f"elasticdl.data_gen.{args.name}")
        dataset.generate(Options(args.out, args.fraction, args.records_per_file, args.seed,
                                 args.compression))
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        print("data_gen: NumPy is missing; install it: pip install numpy", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"data_gen: cannot generate {args.name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
