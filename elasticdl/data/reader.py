"""Readers of records: the interface for users' readers, and the default one for record files."""

from __future__ import annotations

import abc
import ast
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Callable, Optional

from elasticdl.model.errors import ModelError, summary_of


@dataclasses.dataclass
class Metadata:
    """What is known of the records. Passed to feed()."""

    column_names: Optional[list[str]] = None
    column_dtypes: Optional[dict[str, Any]] = None


@dataclasses.dataclass(frozen=True)
class RecordRange:
    """A range of records of one shard of a user's reader."""

    name: str
    start: int
    end: int
    indices: Sequence[int] = ()


@dataclasses.dataclass(frozen=True)
class RecordTask:
    """What a user's reader is to read. The names are those of the original ElasticDL."""

    shard: RecordRange
    shard_name: str
    start: int
    end: int


class AbstractDataReader(abc.ABC):
    """The interface of `custom_data_reader`. A reader is used by one thread at a time."""

    def __init__(self, **kwargs: Any) -> None:  # noqa: B027 - readers may ignore parameters
        """`kwargs`: the parameters of --data_reader_params."""

    @abc.abstractmethod
    def read_records(self, task: Any) -> Iterator[Any]:
        """Yields the records `task.shard.start` to `task.shard.end` of the shard
        `task.shard.name`."""

    @abc.abstractmethod
    def create_shards(self) -> Any:
        """[(name, start, number of records)], or {name: (start, number of records)}."""

    @property
    def records_output_types(self) -> Any:
        """The TensorFlow types of a record. None: byte strings."""
        return None

    @property
    def metadata(self) -> Metadata:
        return Metadata()


class Records(abc.ABC):
    """The records of a dataset, numbered from 0. `read` may be called from one thread at a time."""

    size: int
    metadata: Metadata
    output_types: Any = None  # None: byte strings

    @abc.abstractmethod
    def read(self, start: int, end: int) -> list[Any]:
        """The records from `start` to one before `end`."""


class FileRecords(Records):
    """The records of files, folders or globs (elasticdl.open_records)."""

    def __init__(self, path: str, what: str, index_dir: Optional[str], **options: Any) -> None:
        from elasticdl.records import open_records

        try:
            self._reader = open_records(path, index_dir=index_dir, **options)
        except (OSError, ValueError, TypeError) as error:
            raise ModelError(f"{what}={path}: {error}") from error
        self.size = len(self._reader)
        self.metadata = Metadata(column_names=self._reader.column_names)

    def read(self, start: int, end: int) -> list[bytes]:
        return self._reader.read(start, end)


class UserRecords(Records):
    """The records of a user's reader: its shards one after the other."""

    def __init__(self, reader: Any, what: str) -> None:
        self._reader = reader
        shards = reader.create_shards()
        if isinstance(shards, dict):
            shards = [(name, *where) for name, where in shards.items()]
        try:
            self._shards = [(str(name), int(start), int(count)) for name, start, count in shards]
        except (TypeError, ValueError) as error:
            raise ModelError(f"{what}: create_shards() returned {shards!r}; expected a list of "
                             "(name, start, number of records)") from error
        self.size = sum(count for _, _, count in self._shards)
        self.metadata = getattr(reader, "metadata", None) or Metadata()
        self.output_types = getattr(reader, "records_output_types", None)

    def read(self, start: int, end: int) -> list[Any]:
        records: list[Any] = []
        first = 0  # number of the first record of a shard
        for name, begin, count in self._shards:
            low, high = max(start, first), min(end, first + count)
            if low < high:
                wanted = RecordRange(name, begin + low - first, begin + high - first)
                task = RecordTask(wanted, name, wanted.start, wanted.end)
                read = list(self._reader.read_records(task))
                if len(read) != high - low:
                    raise ValueError(f"read_records() returned {len(read)} records of shard "
                                     f"{name!r} for the range {wanted.start} to {wanted.end}")
                records.extend(read)
            first += count
        return records


def open_data(path: str, flag: str, custom_reader: Optional[Callable[..., Any]], params: str,
              records_per_task: int, index_dir: Optional[str]) -> Records:
    """Opens the data of a flag such as --training_data. ModelError: it cannot be read, or has no
    records."""
    options = parse_params(params)
    what = f"--{flag}"
    records: Records
    if custom_reader is not None:
        try:
            records = UserRecords(
                custom_reader(data_origin=path, records_per_task=records_per_task, **options),
                f"{what}={path}")
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(f"{what}={path}: custom_data_reader failed: {summary_of(error)}"
                             ) from error
    else:
        kind = str(options.pop("reader_type", "") or "").lower() or None
        options.setdefault("format", kind)
        unknown = set(options) - {"format", "header"}
        if unknown:
            raise ModelError(f"--data_reader_params has {', '.join(sorted(unknown))}; the reader "
                             "of files knows reader_type (recordio, tfrecord, csv, tsv, npy) and "
                             "header")
        records = FileRecords(path, what, index_dir, **options)
    if records.size == 0:
        raise ModelError(f"{what}={path}: there are no records")
    return records


def parse_params(text: str) -> dict[str, Any]:
    """Parses `name=value; other=value` of --data_reader_params. A value is a literal of Python, or
    else a string."""
    params: dict[str, Any] = {}
    for piece in filter(None, (piece.strip() for piece in text.split(";"))):
        name, equals, value = piece.partition("=")
        if not equals or not name.strip().isidentifier():
            raise ModelError(f"--data_reader_params: {piece!r} is not NAME=VALUE")
        value = value.strip()
        try:
            params[name.strip()] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            params[name.strip()] = {"true": True, "false": False}.get(value.lower(), value)
    return params
