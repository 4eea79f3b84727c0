"""Runs a user's --cluster_spec FILE.py on pods and a service. `elasticdl train` starts this with
python3 -c, FILE.py as the argument, and on standard input

    {"pods": {"worker": {...}, ...}, "service": {...}}

Writes each object twice, as the kubernetes package reads it and as FILE.py leaves it:

    {"pods": {"worker": [{...}, {...}], ...}, "service": [{...}, {...}]}

or {"error": "..."}. FILE.py defines `cluster`, an object with the methods with_pod(pod) and
with_service(service), which return the V1Pod or V1Service that they are called with.
"""

import importlib.util
import json
import os
import sys
import traceback


class Refusal(Exception):
    """An error that the user has to fix, with our message."""


def place_of(error, path):
    """The line of the user's file as "line 7: "; "" if the error did not happen there."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return f"line {error.lineno}: "
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
             if frame.filename == path]
    return f"line {lines[-1]}: " if lines else ""


def load(path):
    """Returns the object `cluster` of the file."""
    spec = importlib.util.spec_from_file_location("cluster_spec", path)
    if spec is None:
        raise Refusal("it is not a Python file: the name must end in .py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cluster = getattr(module, "cluster", None)
    if not callable(getattr(cluster, "with_pod", None)):
        raise Refusal("it defines no object `cluster` with a method with_pod(pod)")
    return cluster


def adapt(api, model, fields, function, whose):
    """Returns an object before and after the user's function."""
    # The package can only parse responses; all its versions do that with this private method.
    built = api._ApiClient__deserialize(fields, model)
    before = api.sanitize_for_serialization(built)
    after = function(built)
    if type(after) is not type(built):
        name = function.__name__
        raise Refusal(f"{name} returned a {type(after).__name__} for {whose}, not the {model} that "
                      f"it got; end it with `return {name[len('with_'):]}`")
    return [before, api.sanitize_for_serialization(after)]


def run(path, templates):
    try:
        from kubernetes import client
    except ImportError as error:
        raise Refusal(f"it needs the package kubernetes, which {sys.executable} does not have "
                      f"({error}): pip install kubernetes") from error
    cluster = load(path)
    api = client.ApiClient()
    out = {"pods": {role: adapt(api, "V1Pod", pod, cluster.with_pod, f"the pod of a {role}")
                    for role, pod in templates["pods"].items()}}
    if callable(getattr(cluster, "with_service", None)):
        out["service"] = adapt(api, "V1Service", templates["service"], cluster.with_service,
                               "a service")
    return out


def main():
    # The answer gets the original standard output; what the file prints goes to standard error.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    path = sys.argv[1]
    try:
        out = run(path, json.load(sys.stdin))
    except Refusal as refusal:
        out = {"error": str(refusal)}
    except BaseException as error:  # the file may do anything, sys.exit() included
        said = str(error).splitlines()
        out = {"error": f"{place_of(error, path)}{type(error).__name__}"
                        f"{': ' + said[0] if said else ''}"}
    json.dump(out, answer)
    answer.close()


main()
