"""Pictures of contractions: which rank computes which products of elements.

The products of elements of a stage are points, with a coordinate per letter, and an assignment splits them among the
ranks as a layout splits a tensor. So they are drawn as a tensor is. For `ik,kj->ij` this is a cube with the edges i, j
and k: its front shows which rank needs which block of A, its side which block of B, and its top which block of the
result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import PlanError
from ..functions.contraction.plan import Contraction
from ..functions.contraction.stages import Product
from ..layout.distribution import Distribution
from ..layout.layout import Layout
from .figures import INK, add_legend, draw, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["contraction"]


def contraction(plan: Contraction, *, letters: str | None = None) -> Figure:
    """Draw which rank multiplies which cuboid of the letters, product by product, from left to right.

    A rank has one colour in all products; a hatched cell is computed by several ranks. Of a product of more than three
    letters, three are drawn, first those that are split, and the others are at index 0.

    Parameters
    ----------
    plan : Contraction
        A contraction, as `rote.compile_einsum` returns it.
    letters : str, optional
        The letters to draw, one to three, in this order; a product that lacks some is drawn without them.

    Returns
    -------
    Figure
        The figure drawn on; a notebook shows it, `.savefig("who.png")` writes it.

    Raises
    ------
    PlanError
        `letters` are not one to three different letters of the contraction.
    RoteError
        Matplotlib is not installed.

    Examples
    --------
    >>> import rote
    >>> plan = rote.compile_einsum("ik,kj->ij", [(8, 8), (8, 8)], ["block[(0),(1)]"] * 2, grid=(2, 2))
    >>> figure = rote.plot.contraction(plan)
    >>> print(figure.axes[0].get_title())
    3. ik,kj->ij with i:0,j:1
    stationary C (SUMMA)
    """
    known = plan.subscripts.letters
    if letters is not None and not (0 < len({*letters}) == len(letters) < 4 and {*letters} <= {*known}):
        raise PlanError(f"letters={letters!r} are not one to three different letters of {known}")

    products = [(number, stage) for number, stage in enumerate(plan.stages, 1) if isinstance(stage, Product)]
    products = [(number, stage) for number, stage in products if not stage.is_diagonal]

    figure = new_figure(3.6 * len(products) + 0.8, 4.0)
    dists = []
    for place, (number, stage) in enumerate(products, 1):
        split = dict(stage.assignment)
        order = stage.term + "".join([x for x in known if x in "".join(stage.terms) and x not in stage.term])
        if letters is None:
            shown = sorted(order, key=lambda x: x not in split)[:3]
        else:
            shown = [x for x in letters if x in order]

        modes = [*map(order.index, shown)]
        # The products are points, split as a tensor whose modes are the letters: so that tensor is drawn.
        layout = Layout(tuple([split.get(letter, ()) for letter in order]))
        dists.append(Distribution(layout, tuple([plan.extents[letter] for letter in order]), plan.grid))

        ax = figure.add_subplot(1, len(products), place)
        draw(ax, dists[-1], tuple(sorted(modes) if letters is None else modes), order)

        _, *more = ax.get_title().split("\n")
        lines = (*f"{number}. {stage}".split(", "), stage.family, *more)
        ax.set_title("\n".join(lines), fontfamily="monospace", fontsize=9, color=INK)

    add_legend(figure, dists)
    return figure
