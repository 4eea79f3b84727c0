"""Files of the model zoo that generators use."""

import os


def zoo_file(name: str) -> str:
    """The path of a file in the folder model_zoo beside the package elasticdl.

    FileNotFoundError: the package was installed without the model zoo.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.path.join(os.path.dirname(package), "model_zoo", *name.split("/"))
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no {path}; run this in a clone of ElasticDL, which has "
                                "the folder model_zoo")
    return path
