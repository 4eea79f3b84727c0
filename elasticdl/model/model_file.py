"""Loads the file of a user's model and finds its functions."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import traceback
from types import ModuleType
from typing import Any, Callable, Optional

from elasticdl.model.errors import ModelError, summary_of

# Where images have their model zoo.
_ZOO_OF_IMAGES = "/model_zoo"


def resolve_zoo(zoo: str) -> str:
    """The folder of --model_zoo. A relative path that does not exist here means the zoo of the
    image."""
    zoo = zoo or "."
    if os.path.isdir(zoo):
        return os.path.abspath(zoo)
    if not os.path.isabs(zoo) and os.path.isdir(_ZOO_OF_IMAGES):
        return _ZOO_OF_IMAGES
    raise ModelError(f"--model_zoo={zoo}: there is no such folder (current folder: {os.getcwd()})")


class ModelFile:
    """The symbols of a model: functions and classes that the user wrote, found by their names.

    A name without a dot is a symbol of the model's file. A name such as `losses.focal.loss` is the
    symbol `loss` of the file losses/focal.py in the zoo.
    """

    def __init__(self, zoo: str, model_def: str) -> None:
        """model_def: `folder.file.symbol`; its last part is the model itself."""
        self._zoo = zoo
        module, _, self.model_name = model_def.rpartition(".")
        if not module or not self.model_name:
            raise ModelError(f"--model_def={model_def}: expected FILE.SYMBOL or "
                             "FOLDER.FILE.SYMBOL, such as mnist.mnist_functional_api.custom_model")
        self._modules: dict[str, ModuleType] = {}
        self._main = module
        if zoo not in sys.path:
            # At the end: a folder of the zoo must not hide an installed package of its name.
            sys.path.append(zoo)
        self.path = self._path_of(module)
        self._load(module)

    def required(self, name: str, flag: str, *parameters: str) -> Any:
        """The symbol `name`. If `parameters` are given, it must be callable with that many
        arguments."""
        found = self.optional(name, flag, *parameters)
        if found is None:
            module, symbol = self._split(name)
            raise ModelError(f"{self._path_of(module)}: there is no {symbol!r}; define "
                             f"{_call(symbol, parameters)}, or name another symbol with --{flag}")
        return found

    def optional(self, name: str, flag: str, *parameters: str) -> Any:
        """Like `required`. None: the module has no such symbol."""
        module, symbol = self._split(name)
        found = getattr(self._load(module), symbol, None)
        if found is None:
            return None
        self._check_callable(found, symbol, module, flag, parameters)
        return found

    def has(self, name: str) -> bool:
        """Whether the symbol `name` exists."""
        module, symbol = self._split(name)
        return hasattr(self._load(module), symbol)

    def _check_callable(self, found: Any, symbol: str, module: str, flag: str,
                        parameters: tuple[str, ...]) -> None:
        path = self._path_of(module)
        if not callable(found):
            raise ModelError(f"{path}: {symbol!r} (--{flag}) is a {type(found).__name__}; expected "
                             f"a function {_call(symbol, parameters)}")
        try:
            signature = inspect.signature(found)
        except (TypeError, ValueError):
            return  # a built-in: its call will tell
        try:
            signature.bind(*parameters)
        except TypeError:
            raise ModelError(f"{path}: {symbol}{signature} cannot be called as "
                             f"{_call(symbol, parameters)} (--{flag})") from None

    def _split(self, name: str) -> tuple[str, str]:
        module, _, symbol = name.rpartition(".")
        return module or self._main, symbol

    def _path_of(self, module: str) -> str:
        return os.path.join(self._zoo, *module.split(".")) + ".py"

    def _load(self, module: str) -> ModuleType:
        if module not in self._modules:
            self._modules[module] = _import_file(self._path_of(module), module)
        return self._modules[module]


def call_user(function: Callable[..., Any], what: str, *arguments: Any) -> Any:
    """Calls a function of the user. Its errors become ModelErrors with the user's line."""
    try:
        return function(*arguments)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"{what} failed{_users_line(error)}: {summary_of(error)}") from error


def _call(symbol: str, parameters: tuple[str, ...]) -> str:
    return f"{symbol}({', '.join(parameters)})"


def _users_line(error: BaseException) -> str:
    """Where in the user's files an error was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for frame in reversed(frames):
        # AutoGraph copies functions of the user to files with such names.
        installed = ("site-packages" in frame.filename or frame.filename.startswith("<")
                     or "__autograph_generated_file" in frame.filename)
        if not installed and not frame.filename.startswith((ours, sys.base_prefix)):
            return f" at {frame.filename}:{frame.lineno}"
    return ""


def _import_file(path: str, module: str) -> ModuleType:
    if not os.path.isfile(path):
        raise ModelError(f"there is no model file {path}: --model_def=FOLDER.FILE.SYMBOL means "
                         "FOLDER/FILE.py in --model_zoo")
    # A name of its own: the module must not hide an installed package of its name.
    name = "elasticdl_model_zoo." + module
    spec: Optional[Any] = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # a file that ends in .py has a loader
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded
    try:
        spec.loader.exec_module(loaded)
    except SyntaxError as error:
        raise ModelError(f"{error.filename}:{error.lineno}: syntax error: {error.msg}"
                         + (f": {error.text.strip()}" if error.text else "")) from error
    except Exception as error:
        raise ModelError(f"{path} cannot be imported{_users_line(error)}: {summary_of(error)}"
                         ) from error
    return loaded
