"""elasticdl_preprocessing: each layer with dense, sparse and ragged inputs, and in a model."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from elasticdl_preprocessing.feature_column.feature_column import (  # noqa: E402
    concatenated_categorical_column,
)
from elasticdl_preprocessing.layers import (  # noqa: E402
    ConcatenateWithOffset,
    Discretization,
    Hashing,
    IndexLookup,
    LogRound,
    Normalizer,
    RoundIdentity,
    SparseEmbedding,
    ToNumber,
    ToRagged,
    ToSparse,
)
from elasticdl_preprocessing.utils import analyzer_utils  # noqa: E402
from elasticdl_preprocessing.utils.decorators import declare_model_inputs  # noqa: E402

# layer, ragged input, its type, ragged result, type of the result
CASES = {
    "Normalizer": (Normalizer(1.0, 2.0), [[3.0, 5.0], [], [0.0]], tf.float32,
                   [[1.0, 2.0], [], [-0.5]], tf.float32),
    "Normalizer of integers": (Normalizer(1, 2), [[3, 5], [0]], tf.int64,
                               [[1.0, 2.0], [-0.5]], tf.float32),
    "Discretization": (Discretization([0.1, 1.0, 9.8]), [[0.05, 0.1], [0.99, 1.0, 9.9]], tf.float32,
                       [[0, 1], [1, 2, 3]], tf.int64),
    "LogRound": (LogRound(num_bins=16, base=2), [[1.2, 2.6, 0.2, 3.1], [1024.0, 1e30, 0.0, -1.0]],
                 tf.float32, [[0, 1, 0, 2], [10, 0, 0, 0]], tf.int64),
    "LogRound to base e": (LogRound(num_bins=5, default_value=4), [[2.72, 7.4], [0.0, 1e9]],
                           tf.float32, [[1, 2], [4, 4]], tf.int64),
    "RoundIdentity": (RoundIdentity(num_buckets=5), [[1.2, 1.6, 0.2, 3.1], [4.9, 0.5, 1.5, -1.0]],
                      tf.float32, [[1, 2, 0, 3], [0, 0, 2, 0]], tf.int64),
    "RoundIdentity of large ids": (RoundIdentity(num_buckets=2**40, default_value=7),
                                   [[2**24 + 1], [2**40, -3]], tf.int64,
                                   [[2**24 + 1], [7, 7]], tf.int64),
    "Hashing": (Hashing(num_bins=3), [["A", "B"], ["C", "D", "E"]], tf.string,
                [[1, 0], [1, 1, 2]], tf.int64),
    "IndexLookup": (IndexLookup(["A", "B", "C"]), [["A", "B", "C"], ["D", "E"]], tf.string,
                    [[0, 1, 2], [3, 3]], tf.int64),
    "ToNumber": (ToNumber(tf.int32, -1), [["123", ""], ["456", "-789"]], tf.string,
                 [[123, -1], [456, -789]], tf.int32),
    "ToNumber of floats": (ToNumber(tf.float32, 0.0), [["123.1", ""], ["-7.5"]], tf.string,
                           [[123.1, 0.0], [-7.5]], tf.float32),
    "ToNumber of numbers": (ToNumber(tf.float32, 0.0), [[1, 2], [3]], tf.int64,
                            [[1.0, 2.0], [3.0]], tf.float32),
}


def same(a, b):
    assert a.dtype == b.dtype
    assert type(a) is type(b) or isinstance(a, tf.Tensor) and isinstance(b, tf.Tensor)
    if isinstance(a, tf.SparseTensor):
        assert np.array_equal(a.indices, b.indices)
        assert np.array_equal(a.values, b.values)
        assert np.array_equal(a.dense_shape, b.dense_shape)
    elif isinstance(a, tf.RaggedTensor):
        assert a.to_list() == b.to_list()
    else:
        assert np.array_equal(a, b)


@pytest.mark.parametrize("case", CASES)
def test_a_layer_keeps_the_kind_of_its_input(case):
    layer, inputs, dtype, results, result_dtype = CASES[case]
    inputs = tf.ragged.constant(inputs, dtype)
    results = tf.ragged.constant(results, result_dtype)
    same(layer(inputs), results)
    same(layer(inputs.to_sparse()), results.to_sparse())
    same(layer(inputs.flat_values[:, None]), results.flat_values[:, None])


@pytest.mark.parametrize("case", CASES)
def test_a_layer_works_in_a_model_and_in_a_copy_of_it(case):
    layer, inputs, dtype, results, result_dtype = CASES[case]
    values = tf.constant([[value] for row in inputs for value in row], dtype)
    expected = np.array([[value] for row in results for value in row])
    symbolic = tf.keras.Input((1,), dtype=dtype)
    model = tf.keras.Model(symbolic, type(layer).from_config(layer.get_config())(symbolic))
    copy = tf.keras.models.clone_model(model)
    assert np.allclose(model(values), expected)
    assert np.allclose(copy(values), expected)


def test_a_layer_takes_sparse_and_ragged_inputs_of_a_model():
    ragged = tf.ragged.constant([["A", "B"], [], ["C"]])
    for kind, value in (("ragged", ragged), ("sparse", ragged.to_sparse())):
        symbolic = tf.keras.Input((None,), dtype=tf.string, **{kind: True})
        model = tf.keras.Model(symbolic, SparseEmbedding(3, 2)(Hashing(3)(symbolic)))
        assert model(value).shape == (3, 2)


def test_hashing_matches_the_published_buckets():
    assert Hashing(3)(tf.constant([["A"], ["B"], ["C"], ["D"], ["E"]])).numpy().tolist() == [
        [1], [0], [1], [1], [2]]


def test_hashing_takes_integers_as_decimal_numbers():
    same(Hashing(1000)(tf.constant([[17], [-4]])), Hashing(1000)(tf.constant([["17"], ["-4"]])))


def test_hashing_refuses_floats_and_no_bins():
    with pytest.raises(ValueError, match="float32"):
        Hashing(3)(tf.constant([1.0]))
    with pytest.raises(ValueError, match="positive"):
        Hashing(0)


def test_normalizer_refuses_to_divide_by_zero():
    with pytest.raises(ValueError, match="divisor"):
        Normalizer(1.0, 0)


def test_discretization_counts_buckets_and_refuses_unsorted_boundaries():
    assert Discretization([0.0, 1.0]).num_bins() == 3
    with pytest.raises(ValueError, match="rise"):
        Discretization([1.0, 0.0])


def test_rounding_replaces_infinities_and_nan():
    values = tf.constant([float("inf"), float("-inf"), float("nan")])
    assert RoundIdentity(10, default_value=3)(values).numpy().tolist() == [3, 3, 3]
    assert LogRound(10, default_value=3)(values).numpy().tolist() == [3, 3, 3]


def test_index_lookup_reads_a_file(tmp_path):
    file = tmp_path / "vocabulary.txt"
    file.write_text("A\nB\nC\n")
    layer = IndexLookup(str(file), num_oov_tokens=10)
    assert layer.vocab_size() == 13
    assert layer(tf.constant(["C", "A"])).numpy().tolist() == [2, 0]
    words = layer(tf.constant([f"word {i}" for i in range(100)])).numpy()
    assert set(words) == set(range(3, 13))
    file.unlink()
    assert IndexLookup.from_config(layer.get_config()).vocab_size() == 13


def test_index_lookup_refuses_repeated_words_and_no_words(tmp_path):
    file = tmp_path / "vocabulary.txt"
    file.write_text("A\nB\nA\n")
    with pytest.raises(ValueError, match="'A' twice"):
        IndexLookup(str(file))
    with pytest.raises(ValueError, match="empty"):
        IndexLookup([])
    with pytest.raises(ValueError, match="num_oov_tokens"):
        IndexLookup(["A"], num_oov_tokens=0)


def test_a_model_with_a_vocabulary_can_be_exported(tmp_path):
    symbolic = tf.keras.Input((1,), dtype=tf.string, name="word")
    model = tf.keras.Model(symbolic, IndexLookup(["A", "B"])(symbolic))
    tf.saved_model.save(model, str(tmp_path / "model"))
    serve = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
    (result,) = serve(word=tf.constant([["B"], ["X"]])).values()
    assert result.numpy().tolist() == [[1], [2]]


def test_concatenation_adds_the_offset_of_each_input():
    layer = ConcatenateWithOffset(offsets=[0, 10], axis=1)
    one, two = tf.constant([[1], [1]]), tf.constant([[2], [2]])
    same(layer([one, two]), tf.constant([[1, 12], [1, 12]]))
    one, two = tf.ragged.constant([[1], [], [1]]), tf.ragged.constant([[2], [2], []])
    expected = tf.ragged.constant([[1, 12], [12], [1]])
    same(layer([one, two]), expected)
    sparse = layer([one.to_sparse(), two.to_sparse()])
    assert sparse.values.numpy().tolist() == [1, 12, 12, 1]
    assert sparse.dense_shape.numpy().tolist() == [3, 2]


def test_concatenation_without_offsets_or_of_one_input():
    one = tf.constant([[1], [1]])
    same(ConcatenateWithOffset(None)([one, one]), tf.constant([[1, 1], [1, 1]]))
    same(ConcatenateWithOffset([5])(one), one)


def test_concatenation_refuses_inputs_that_do_not_fit():
    one = tf.constant([[1], [1]])
    with pytest.raises(ValueError, match="3 offsets, but 2 inputs"):
        ConcatenateWithOffset([0, 1, 2])([one, one])
    with pytest.raises(ValueError, match="different kinds"):
        ConcatenateWithOffset([0, 1])([one, tf.sparse.from_dense(one)])


def test_to_ragged_splits_texts_and_drops_missing_values():
    same(ToRagged()(tf.constant([[1], [-1], [4]], tf.int64)),
         tf.ragged.constant([[1], [], [4]], tf.int64))
    same(ToRagged()(tf.constant([["1,2,3"], ["4,5"], [""]])),
         tf.ragged.constant([["1", "2", "3"], ["4", "5"], []]))
    same(ToRagged(sep="")(tf.constant([["1,2", "", "3"]])), tf.ragged.constant([["1,2", "3"]]))
    same(ToRagged(sep="|")(tf.constant([["1|2", "", "3"]])), tf.ragged.constant([["1", "2", "3"]]))
    same(ToRagged(ignore_value=0)(tf.constant([[0, 1], [2, 0]])), tf.ragged.constant([[1], [2]]))
    same(ToRagged()(tf.constant([[0.0, -1.0]])), tf.ragged.constant([[0.0, -1.0]]))
    same(ToRagged()(tf.sparse.from_dense([["a", "", "b"]])), tf.ragged.constant([["a", "b"]]))


def test_to_sparse_drops_missing_values():
    expected = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], ["A", "B", "C"], [2, 2])
    same(ToSparse()(tf.constant([["A", ""], ["B", "C"]])), expected)
    same(ToSparse()(tf.constant([[12, -1], [45, 78]])),
         tf.SparseTensor([[0, 0], [1, 0], [1, 1]], tf.constant([12, 45, 78]), [2, 2]))
    same(ToSparse()(tf.constant([[0.0, 0.5]])), tf.SparseTensor([[0, 1]], [0.5], [1, 2]))
    same(ToSparse(ignore_value=7)(tf.constant([[7, -1]])),
         tf.SparseTensor([[0, 1]], tf.constant([-1]), [1, 2]))
    same(ToSparse()(expected), expected)
    same(ToSparse()(tf.ragged.constant([["A"], ["B", "C"]])), expected)


@pytest.mark.parametrize("combiner, of_two", [("sum", [4.0, 6.0]), ("mean", [2.0, 3.0]),
                                             ("sqrtn", [4 / 2**0.5, 6 / 2**0.5])])
def test_an_embedding_combines_the_ids_of_a_row(combiner, of_two):
    table = tf.constant([[9.0, 9.0], [1.0, 2.0], [3.0, 4.0]])
    layer = SparseEmbedding(3, 2, tf.keras.initializers.Constant(table.numpy()), combiner)
    ragged = tf.ragged.constant([[1, 2], [], [2], [0, -1]], tf.int64)
    expected = [of_two, [0.0, 0.0], [3.0, 4.0], [9.0, 9.0]]
    assert np.allclose(layer(ragged), expected)
    assert np.allclose(layer(ragged.to_sparse()), expected)
    # In a dense input 0 is no id.
    assert np.allclose(layer(tf.constant([[1, 2], [0, 0]])), [of_two, [0.0, 0.0]])


def test_an_embedding_has_sparse_gradients_and_a_config():
    layer = SparseEmbedding(100, 4, combiner="sum")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(tf.ragged.constant([[5, 7], [5]], tf.int64)))
    gradient = tape.gradient(loss, layer.embeddings)
    assert isinstance(gradient, tf.IndexedSlices)
    copy = SparseEmbedding.from_config(layer.get_config())
    assert (copy.input_dim, copy.output_dim, copy.combiner) == (100, 4, "sum")
    with pytest.raises(ValueError, match="combiner"):
        SparseEmbedding(3, 2, combiner="max")


class TestConcatenatedColumn:
    hashed = tf.feature_column.categorical_column_with_hash_bucket("aaa", 1024)
    identity = tf.feature_column.categorical_column_with_identity("bbb", 32)
    buckets = tf.feature_column.bucketized_column(
        tf.feature_column.numeric_column("ccc"), [1, 2, 3, 4, 5])

    def test_it_has_the_names_and_the_buckets_of_all(self):
        column = concatenated_categorical_column([self.identity, self.hashed, self.buckets])
        assert column.name == "aaa_C_bbb_C_ccc_bucketized"
        assert column.num_buckets == 1024 + 32 + 6
        assert set(column.parse_example_spec) == {"aaa", "bbb", "ccc"}

    def test_the_ids_of_a_column_follow_those_of_the_column_before(self):
        users = tf.feature_column.categorical_column_with_identity("user", 32)
        items = tf.feature_column.categorical_column_with_identity("item", 128)
        column = tf.feature_column.indicator_column(concatenated_categorical_column([users, items]))
        result = tf.keras.layers.DenseFeatures([column])({"user": [10, 20], "item": [1, 120]})
        assert np.array_equal(result, tf.one_hot([10, 20], 160) + tf.one_hot([33, 152], 160))

    def test_an_unknown_word_stays_unknown(self):
        words = tf.feature_column.categorical_column_with_vocabulary_list("word", ["a", "b"])
        column = tf.feature_column.indicator_column(
            concatenated_categorical_column([self.identity, words]))
        result = tf.keras.layers.DenseFeatures([column])(
            {"bbb": [3, 4], "word": tf.constant(["b", "x"])})
        assert np.array_equal(result, tf.one_hot([3, 4], 34) + tf.one_hot([33, -1], 34))

    def test_a_model_with_it_trains_and_is_copied(self):
        column = tf.feature_column.embedding_column(
            concatenated_categorical_column([self.hashed, self.buckets]), 2)
        inputs = {"aaa": tf.keras.Input((1,), name="aaa", dtype=tf.string),
                  "ccc": tf.keras.Input((1,), name="ccc")}
        dense = tf.keras.layers.DenseFeatures([column])
        model = tf.keras.Model(inputs, dense(inputs))
        assert model({"aaa": tf.constant([["x"]]), "ccc": tf.constant([[2.5]])}).shape == (1, 2)
        assert [v.shape.as_list() for v in model.trainable_variables] == [[1030, 2]]
        config = column.categorical_column.get_config()
        assert type(column.categorical_column).from_config(config) == column.categorical_column

    def test_columns_that_are_not_categorical_are_refused(self):
        with pytest.raises(ValueError, match="bucketized_column"):
            concatenated_categorical_column([tf.feature_column.numeric_column("n")])
        with pytest.raises(ValueError, match="at least one"):
            concatenated_categorical_column([])


@pytest.mark.parametrize("get, variable, text, value", [
    ("get_min", "_age_min", "1.5", 1.5), ("get_max", "_age_max", "90", 90.0),
    ("get_avg", "_age_avg", "38.6", 38.6), ("get_stddev", "_age_stddev", "13.6", 13.6),
    ("get_bucket_boundaries", "_age_boundaries", "30,18,18,60.5", [18.0, 30.0, 60.5]),
    ("get_distinct_count", "_age_distinct_count", "73", 73),
    ("get_vocabulary", "_age_vocab", "/data/ages.txt", "/data/ages.txt")])
def test_statistics_come_from_the_environment(get, variable, text, value, monkeypatch):
    function = getattr(analyzer_utils, get)
    assert function("age", "default") == "default"
    monkeypatch.setenv(variable, text)
    result = function("age", "default")
    assert result == value and type(result) is type(value)


def test_a_wrong_statistic_is_named(monkeypatch):
    monkeypatch.setenv("_age_min", "young")
    with pytest.raises(ValueError, match="_age_min.*'young'"):
        analyzer_utils.get_min("age", 0)


def test_a_model_declares_its_inputs():
    @declare_model_inputs("wide", "deep")
    class Model(tf.keras.Model):
        pass

    assert Model._model_inputs == ["wide", "deep"]
    with pytest.raises(ValueError):
        declare_model_inputs()
    with pytest.raises(ValueError, match="3"):
        declare_model_inputs("wide", 3)
