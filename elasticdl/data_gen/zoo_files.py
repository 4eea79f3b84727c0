"""Files of the model zoo that generators use."""

import os


def zoo_file(name: str) -> str:
    """The path of a file of the model zoo: in the folder model_zoo beside the package, as in a
    clone, or in the copy that the wheel contains.

    FileNotFoundError: neither exists.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    clone = os.path.dirname(os.path.dirname(here))
    for folder in (clone, here):
        path = os.path.join(folder, "model_zoo", *name.split("/"))
        if os.path.exists(path):
            return path
    raise FileNotFoundError(f"there is no model_zoo/{name} in {clone}; run this in a clone of "
                            "ElasticDL, or install the wheel of elasticdl")
