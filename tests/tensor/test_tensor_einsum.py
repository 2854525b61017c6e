"""Einstein sums of random subscripts over random layouts, and the reading of subscripts."""

from __future__ import annotations

import numpy as np
import pytest
from cases import pick_layout
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import examples

import rote
from rote import DistTensor, LayoutError, NotationError
from rote.functions.contraction.subscripts import read_subscripts


@st.composite
def contractions(draw):
    """Subscripts, one to three arrays that they fit, and a layout of each on one grid."""

    def pick(options):
        return draw(st.sampled_from(options))

    grid = pick([(1,), (2,), (3,), (2, 2), (1, 2)])
    extents = {letter: pick([3, 2, 1, 4, 0]) for letter in "abcd"}
    terms = ["".join(pick("abcd") for _ in range(pick([2, 1, 3, 0]))) for _ in range(pick([2, 1, 3]))]
    used = [letter for letter in "abcd" if any(letter in term for term in terms)]
    result = "".join(letter for letter in draw(st.permutations(used)) if pick([True, False]))
    shapes = [tuple(extents[letter] for letter in term) for term in terms]
    return f"{','.join(terms)}->{result}", shapes, [pick_layout(pick, shape, grid) for shape in shapes], grid


@settings(max_examples=examples(80))
@given(contractions())
def test_einsum_is_numpys(case):
    """The sum of products over any layouts of any operands is that of the arrays; partial ones are sums of blocks."""
    text, shapes, lays, grid = case
    generator = np.random.default_rng(0)
    arrays = [generator.integers(-3, 4, shape).astype("f8") for shape in shapes]

    def program(comm):
        pairs = zip(arrays, lays, strict=True)
        tensors = [DistTensor.from_global(array, layout, comm, grid) for array, layout in pairs]
        result = np.einsum(text, *tensors)
        assert not result.distribution.partial
        return result.to_global()

    with rote.config(implicit="allow"):
        for got in rote.run(program, int(np.prod(grid))):
            np.testing.assert_array_equal(got, np.einsum(text, *arrays))


@pytest.mark.parametrize(
    ("text", "orders"),
    [("ij,jk", (2, 2)), ("ba", (2,)), ("...i,i...->...", (3, 2)), (" i j -> j i ", (2,)), ("aAb", (3,)), (",", (0, 0))],
)
def test_subscripts_are_read_as_numpy_reads_them(text, orders):
    """A text means what it means to NumPy: the result has the shape that it has there."""
    arrays = [np.zeros((2,) * order) for order in orders]
    said = read_subscripts(text, orders)
    assert [len(term) for term in said.terms] == list(orders)
    assert (2,) * len(said.result) == np.einsum(text, *arrays).shape


@pytest.mark.parametrize(
    ("text", "orders", "error", "says", "under"),
    [
        ("ij,jk", (2,), LayoutError, "for 2 operands, not 1", ""),
        ("i,j", (1, 2), LayoutError, "another order", "j"),
        ("i.j", (2,), NotationError, "no letter", "."),
        ("ij->i.", (2,), NotationError, "no letter", "."),
        ("i->ii", (1,), NotationError, "the result names 'i' twice", "i"),
        ("i->j", (1,), NotationError, "no operand has the letter 'j' of the result", "j"),
    ],
)
def test_wrong_subscripts_are_named(text, orders, error, says, under):
    """A text that is none is refused with what is wrong, and a caret under it."""
    with pytest.raises(error, match=says) as caught:
        read_subscripts(text, orders)
    _, shown, caret, *_ = str(caught.value).split("\n")
    assert shown[caret.index("^") :][:1] == under and shown.strip() == text


@pytest.mark.parametrize("labels", [(0, 1), (1, 0), (30, 2), (2, 30), (25, 26), (0, 51), (..., 0), (np.int8(3), 2)])
def test_labels_are_in_numpys_order(labels):
    """Law: labels from 0 to 51 are those of NumPy; a result without labels has them in ascending order."""
    array = np.arange(6.0).reshape(2, 3)
    x = DistTensor.from_global(array, "block[(0),()]")
    for result in ([], [labels], [labels[::-1]]):
        got, want = np.einsum(x, labels, *result), np.einsum(array, [*labels], *map(list, result))
        np.testing.assert_array_equal(got.to_global(), want, strict=True)


@pytest.mark.parametrize("label", [-1, True, np.True_, 52, 0.0, "a", None, slice(None), [0]])
def test_labels_that_numpy_refuses_are_refused(label):
    """Law: a label is an integer from 0 to 51, or an ellipsis, in operands and in the result; all ranks say so."""

    def program(comm):
        x = DistTensor.zeros((2, 3), "block[(0),()]", comm)
        for labels in ([[label, 0]], [[0, label]], [[0, 1], [label, 0]]):
            with pytest.raises(LayoutError, match="each with a list of labels from 0 to 51"):
                np.einsum(x, *labels)
            with pytest.raises((TypeError, ValueError)):
                np.einsum(np.zeros((2, 3)), *labels)
        with pytest.raises(LayoutError, match="from 0 to 51"):
            rote.compile_einsum([[label, 0]], [(2, 3)], grid=2)

    rote.run(program, 2)


def test_extents_that_differ_are_named():
    """The caret is under the letter of the mode that has another extent."""
    with pytest.raises(LayoutError, match="not 3 and 4") as caught:
        read_subscripts("ij,jk->ik", (2, 2)).extents([(2, 3), (4, 5)])
    _, shown, caret, *_ = str(caught.value).split("\n")
    assert shown[caret.index("^") :] == "jk->ik"


def test_operands_on_other_grids_come_to_that_of_the_largest():
    """Law: grids differ as layouts do; the product is that of the whole arrays."""
    matrix, vector = np.arange(12.0).reshape(3, 4), np.arange(4.0)

    def program(comm):
        for layout, grid in (("block[(0),(1)]", (2, 2)), ("[(0),()]", (4,)), ("block[(),(0)]", (2, 2))):
            for other, ranks in (("block[(0)]", (4,)), ("[(1)]", (2, 2)), ("[()]", (4,)), ("[(1,0)]", (2, 2))):
                x = rote.DistTensor.from_global(matrix, layout, comm, grid)
                y = rote.DistTensor.from_global(vector, other, comm, ranks)
                assert np.array_equal((x @ y).to_global(), matrix @ vector)
                assert np.array_equal(np.multiply.outer(matrix, vector), np.tensordot(x, y, 0).to_global())

    with rote.config(implicit="allow"):
        rote.run(program, 4)


@pytest.mark.parametrize("text", ["ij,k->i", "ik,j->i", "ij,k->", "ij,k->ij", "ij,kj,l->ik"])
@pytest.mark.parametrize("extent", [0, 1, 2])
def test_sums_of_nothing_are_zero(text, extent):
    """Law: a factor that is summed alone and is empty, on all ranks or on some, makes no NaN of what is infinite."""
    letters = dict.fromkeys("ijl", 2) | {"k": extent}
    shapes = [tuple(letters[letter] for letter in term) for term in text.split("->")[0].split(",")]
    arrays = [np.full(shape, np.inf) for shape in shapes]

    def program(comm):
        layouts = [f"block[{','.join(['()'] * (array.ndim - 1) + ['(0)'])}]" for array in arrays]
        xs = [DistTensor.from_global(array, lay, comm) for array, lay in zip(arrays, layouts, strict=True)]
        with rote.config(implicit="allow"):
            return np.einsum(text, *xs).to_global()

    for result in rote.run(program, 3):
        np.testing.assert_array_equal(result, np.einsum(text, *arrays))
