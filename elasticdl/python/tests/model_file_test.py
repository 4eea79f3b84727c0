"""Model files: how they are found and imported, and the errors that their users get."""

import textwrap

import pytest

from elasticdl.model.errors import ModelError
from elasticdl.model.model_file import ModelFile, call_user, resolve_zoo
from elasticdl.model.model_spec import ModelSpec, SymbolNames

MODEL = """
    import tensorflow as tf

    def custom_model():
        return tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])

    def feed(dataset, mode, metadata):
        return dataset

    def loss(labels, predictions):
        return 0.0

    def optimizer(lr=0.1):
        return tf.keras.optimizers.SGD(lr)
"""


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return str(path)


def spec_of(folder, text, model_def="m.custom_model", job_type="training", **names):
    write(folder, "m.py", text)
    return ModelSpec(ModelFile(str(folder), model_def), SymbolNames(**names), job_type)


def test_finds_a_model_in_a_folder_of_the_zoo(tmp_path):
    write(tmp_path, "mnist/functional.py", MODEL)
    spec = ModelSpec(ModelFile(str(tmp_path), "mnist.functional.custom_model"), SymbolNames(),
                     "training")
    assert spec.make_model().output_shape == (None, 1)
    assert spec.file.path == str(tmp_path / "mnist" / "functional.py")


def test_a_folder_of_the_zoo_does_not_hide_an_installed_package(tmp_path):
    write(tmp_path, "textwrap/model.py", MODEL + "    import textwrap\n    textwrap.dedent('')\n")
    ModelFile(str(tmp_path), "textwrap.model.custom_model")


def test_a_dotted_name_selects_another_file(tmp_path):
    write(tmp_path, "losses/squared.py", "def loss(labels, predictions):\n    return 'other'\n")
    assert spec_of(tmp_path, MODEL, loss="losses.squared.loss").loss(None, None) == "other"


def test_accepts_the_older_name_of_feed(tmp_path):
    spec = spec_of(tmp_path, MODEL.replace("def feed", "def dataset_fn"))
    assert spec.feed.__name__ == "dataset_fn"


def test_a_prediction_needs_neither_loss_nor_optimizer(tmp_path):
    text = MODEL.replace("def loss", "def other_loss").replace("def optimizer", "def other")
    assert spec_of(tmp_path, text, job_type="prediction").make_processor() is None


@pytest.mark.parametrize("change, expected", [
    (("def loss(labels, predictions):", "def loss(labels, predictions)"),
     "m.py:10: syntax error"),
    (("def loss", "def other"), "m.py: there is no 'loss'; define loss(labels, predictions)"),
    (("def feed(dataset, mode, metadata)", "def feed(dataset)"),
     "feed(dataset) cannot be called as feed(dataset, mode, metadata)"),
    (("import tensorflow as tf", "import tensorflow as tf\n    import no_such_module"),
     "cannot be imported at "),
])
def test_names_the_file_and_what_was_expected(tmp_path, change, expected):
    with pytest.raises(ModelError) as error:
        spec_of(tmp_path, MODEL.replace(*change))
    assert expected in str(error.value)


def test_a_model_that_is_not_a_keras_model_is_named(tmp_path):
    spec = spec_of(tmp_path, MODEL.replace("return tf.keras.Sequential", "return list"))
    with pytest.raises(ModelError, match=r"custom_model\(\) returned a list; expected a tf.keras"):
        spec.make_model()


def test_a_missing_file_and_a_short_model_def_are_named(tmp_path):
    with pytest.raises(ModelError, match="there is no model file .*/a/b.py"):
        ModelFile(str(tmp_path), "a.b.custom_model")
    with pytest.raises(ModelError, match="expected FILE.SYMBOL"):
        ModelFile(str(tmp_path), "custom_model")


def test_a_missing_zoo_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match="--model_zoo=nowhere: there is no such folder"):
        resolve_zoo("nowhere")


def test_an_error_of_the_user_names_the_users_line(tmp_path):
    path = write(tmp_path, "m.py", MODEL + "\n    def bad():\n        return 1 / 0\n")
    bad = ModelFile(str(tmp_path), "m.custom_model").required("bad", "x")
    with pytest.raises(ModelError) as error:
        call_user(bad, "bad()")
    assert f"at {path}:17: ZeroDivisionError" in str(error.value)
