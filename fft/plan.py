"""The class FFT: a walk bound to ranks, ready to run again and again."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import pi
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from rote.compiler.plan import Plan
from rote.compiler.tasks import Tasks
from rote.errors import LayoutError
from rote.functions.moves import gathers_are_silent, records_open
from rote.layout.distribution import Distribution
from rote.layout.grid import Grid, tensor_shape
from rote.layout.layout import Layout
from rote.layout.refine import with_components
from rote.lazy import late
from rote.machines.machine import Machine, as_machine
from rote.runtime.choose import Progress, Tune, time_limit
from rote.runtime.comm.agreement import agree, from_root
from rote.runtime.comm.protocol import Array, Comm
from rote.runtime.comm.resolve import as_comm
from rote.runtime.comm.threads import check_threads
from rote.runtime.log import log
from rote.tensor import DistTensor

from .families import is_text
from .families.choose import Choice, best, choices_for, compared, walk_for, warn_if_gathered
from .program.program import Pair, bind_pair, empty, list_moves, transformed
from .request import Norm, Options, as_arguments, check_norm, check_ranks, check_tensor, planned_request
from .transforms import FOURIER
from .walk import Walk, describe
from .wavenumbers import (
    Nyquist,
    Wavenumbers,
    chosen_axes,
    local_wavenumbers,
    shell_sums,
    spectrum_at,
    wavenumber_tensors,
)

if TYPE_CHECKING:
    from .tuning import Decision, Tried

__all__ = ["FFT"]

_FOREIGN = "the transform and the tensor are on different communicators; give both the same comm"


class FFT:
    """A parallel transform of one shape, layout and dtype, planned once and run again and again.

    On a single rank any thread may call it; simultaneous calls use its scratch memory one after the other. (Functions
    such as `fftn` have scratch memory per thread.) Of several ranks, one thread each may use a communicator at a time;
    other threads need another one, such as `comm.split(0, comm.rank)`.

    Parameters
    ----------
    shape : Sequence[int] | int
        Of the whole tensor.
    layout : Layout | str, optional
        Of the input; if None, the one in which the algorithm begins, or with "auto" the cheapest of all.
    grid : Grid | Sequence[int] | int, optional
        Of the ranks; -1 stands for the extent that fits, as in (2, -1). If None, the most balanced grid, or with "auto"
        and without a layout the cheapest.
    comm : object, optional
        An mpi4py or Rote communicator; if None, the ranks of `rote.run`, MPI's world, or this process alone.
    dtype : DTypeLike, default 'c16'
        Of the input; a real one gives half a spectrum, as `numpy.fft.rfftn`.
    axes : Sequence[int] | int, optional
        As in NumPy; all if None. A real transform halves the last of them.
    algorithm : str, default 'auto'
        One of `rote.fft.algorithms`: "slab" (a grid of order 1), "pencil" (order 2 or more), "rows" (order 1),
        "volumetric" or "cyclic" (as many grid modes as axes), "ragged" (any number of points on any number of ranks),
        or "auto": the cheapest by the cost model, of those in which no rank holds much more than its part, if there are
        any. Or the text of a walk, a line per layout, as `f.walk` prints it.
    norm : str, optional
        "backward", "ortho" or "forward", as in NumPy.
    output : Layout | str, optional
        The layout of the spectrum; if None, that in which the walk ends, which is the cheapest.
    kinds : Mapping[int, str] | str, optional
        What `forward` does: "fft", "rfft", or another name of `rote.fft.transforms.FORWARD`, such as "dct2", for all
        axes; or a mapping from axis to kind, `{0: "dct2", 1: "fft", 2: "rfft"}`, which also names the axes. For a
        complex dtype, real kinds transform real and imaginary part separately. A real dtype has "fft" only beside one
        "rfft". If None: "rfft" for a real dtype, else "fft"; or the kinds in the text of a walk.
    s : Sequence[int] | int, optional
        The lengths of the transforms along `axes`, or along the axes that `kinds` names, in its order, as in NumPy:
        `forward` cuts the tensor to them or pads it with zeros at the end; `backward` undoes it. -1 keeps a length.
    resample : Sequence[int] | int, optional
        Per axis, the number of points whose spectrum is kept, for products without aliasing (the 3/2 rule): `forward`
        cuts the spectrum to that of so many points, `backward` pads it. -1 keeps all of it. With norm="forward" it is
        that of a signal on these points. What is cut or padded is never sent.
    tune : {'model', 'measure', 'patient'}, default 'model'
        "model" estimates what is fastest. Samples of new lengths are timed, once, to find the fastest library, so the
        bits are the same while arguments, libraries and wisdom are; with ROTE_WISDOM= (empty) nothing is timed, and
        they are the same in every run. "measure" times for some seconds, and "patient" for longer: with algorithm
        "auto", the few walks that the model finds cheapest, and where messages travel, with method "auto", how they do.
        Only what is clearly faster than the model's choice is taken, the same on all ranks, but the last bits may
        differ from run to run. It is kept (see `rote.wisdom`).
    threads : int, default 1
        Per rank, for local transforms; all ranks together should not have more threads than cores.
    method : str, default 'auto'
        How messages travel between ranks: a name in `rote.methods`, or "auto".
    machine : Machine | str, optional
        For which moves are compiled, and "auto" chooses, or its name; if None, the default one, or for "auto" the one
        that `rote tune` measured on as many ranks.
    progress : Callable[[float], object], optional
        Called on this rank with the part that is done, from 0 to 1, while walks are timed.
    tune_seconds : float, optional
        The most seconds that timing may take, about, by the latest rank's clock; then what is clearly faster is taken,
        or the model's choice. A run that has begun is finished. None for the default time.
    wire : str, optional
        "f4" rounds double precision to single while it travels: half the bytes, and a relative error, in 2-norm, of at
        most 6e-8 per move. Where ranks share memory, nothing travels and nothing is rounded.

    Raises
    ------
    LayoutError
        Shape, layout, axes, kinds and algorithm do not fit each other.
    PlanError
        `wire` is another value, or `dtype` is not of double precision.
    CommError
        The grid does not match the ranks, or MPI was not started for several threads.

    Warns
    -----
    GatherWarning
        Every rank comes to hold a whole axis that was split; on rank 0.

    See Also
    --------
    rote.fft.fftn : Transform without a plan of one's own.
    rote.fft.compare : Compare the walks that may be taken.

    Notes
    -----
    Source: slab and pencil, Dalcin et al. (2019, sections 3.3, 3.5, 3.6); rows, Duy and Ozaki (2015, section 2);
    volumetric and cyclic, Popovici et al. (2019, section 3.2).

    Examples
    --------
    >>> import rote
    >>> f = rote.fft.FFT((8, 9, 10), dtype="f8")
    >>> x = rote.DistTensor.zeros((8, 9, 10), f.input_layout)
    >>> f.forward(x).shape, f.backward(f.forward(x)).shape
    ((8, 9, 6), (8, 9, 10))
    >>> kinds = {0: "dct2", 1: "fft", 2: "rfft"}
    >>> print(rote.fft.FFT((8, 9, 10), "block[(0),(),()]", dtype="f8", kinds=kinds).walk)
      block[(0),(),()]: dct2(0), rfft(1, 2)
    >>> f.shape == f.input_shape, f.input_dtype, f.grid.shape, f.comm.size
    (True, dtype('float64'), (1,), 1)
    >>> print(f.input_distribution, f.output_distribution.shape, f.output_layout == f.output_distribution.layout)
    block[(0),(),()] on (8, 9, 10), grid 1 (8, 9, 6) True
    >>> f.axes, len(f.moves), f.workspace_bytes >= 0, len(f.libraries) > 0, f.tried
    ((0, 1, 2), 0, True, True, ())
    """

    def __init__(
        self,
        shape: Sequence[int] | int,
        layout: Layout | str | None = None,
        grid: Grid | Sequence[int] | int | None = None,
        comm: object | None = None,
        dtype: npt.DTypeLike = "c16",
        axes: Sequence[int] | int | None = None,
        algorithm: str = "auto",
        norm: str | None = None,
        output: Layout | str | None = None,
        kinds: Mapping[int, str] | str | None = None,
        s: Sequence[int] | int | None = None,
        resample: Sequence[int] | int | None = None,
        tune: Tune = "model",
        threads: int = 1,
        method: str = "auto",
        machine: Machine | str | None = None,
        progress: Progress | None = None,
        tune_seconds: float | None = None,
        wire: str | None = None,
    ) -> None:
        self._comm = as_comm(comm)
        if isinstance(machine, str):
            agree(self._comm, "FFT", (machine,))
            machine = from_root(self._comm, partial(as_machine, machine))  # other hosts may have another file
        elif machine is not None:
            machine = as_machine(machine)

        self._options = Options(tune, threads, method, machine, progress, tune_seconds)
        check_threads(self._options.threads, f"FFT(…, threads={threads})")
        self._norm = check_norm(norm)

        extents, text = tensor_shape(shape), is_text(algorithm)
        request = planned_request(extents, dtype, axes, kinds, text, s, resample, wire)
        self._axes = request.axes

        lengths = (("s", s, request.points), ("resample", resample, request.kept))
        self._lengths = {name: along for name, argument, along in lengths if argument is not None}
        arguments = as_arguments(extents, request, self._comm.size, layout, grid, output)

        self._choices: tuple[Choice, ...] = ()  # that "auto" has had
        self._tuned: Decision | None = None
        self._lock = threading.Lock()  # both directions have one scratch
        self._pairs: dict[Norm, Pair] = {}  # by their norm

        with time_limit(tune_seconds):
            if algorithm == "auto":
                on = self._options.machine_on(self._comm).on(self._comm.size)
                self._choices = choices_for(arguments, on)
                walk = best(self._choices)
            else:
                on = as_machine(machine).on(self._comm.size)
                walk = walk_for(arguments, algorithm)
            check_ranks(walk.source.grid, self._comm.size)

            if tune != "model" and self._choices:
                from .tuning import decide

                self._tuned = decide(arguments, self._choices, self._comm, self._norm, self._options)
                walk = self._tuned.walk

            # Ranks of one process share the walk, and its plans.
            self.walk: Walk = walk if walk.machine == on else replace(walk, machine=on)
            if (tune, method) != ("model", "auto"):  # what was asked for is timed, or refused, now
                self._bound()

        source, target = self.walk.source, self.walk.target
        planned = self.walk.kind, source.shape, self.walk.dtype, source.grid, source.layout, target.layout
        log(self._comm, "choice of a walk: %s of %s %s on grid %s, %s -> %s", *planned)

        if not (text or gathers_are_silent()):
            warn_if_gathered(self.walk, request, self._comm, 1)

    @property
    def comm(self) -> Comm:
        """The communicator of the ranks that transform together."""
        return self._comm

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what `forward` takes and `backward` gives, as `input_shape`."""
        return self.input_shape

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of what `forward` takes and `backward` gives."""
        return self.walk.source.shape

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of what `forward` gives and `backward` takes.

        Examples
        --------
        >>> from rote.fft import FFT
        >>> FFT((8, 9, 10), dtype="f8").output_shape
        (8, 9, 6)
        """
        return self.walk.target.shape

    @property
    def input_dtype(self) -> np.dtype[Any]:
        """The dtype of what `forward` takes and `backward` gives."""
        return self.walk.dtype

    @property
    def output_dtype(self) -> np.dtype[Any]:
        """The dtype of what `forward` gives and `backward` takes.

        Examples
        --------
        >>> from rote.fft import FFT
        >>> FFT(8, dtype="f4").output_dtype
        dtype('complex64')
        """
        return self.walk.dtypes()[-1]

    @property
    def input_layout(self) -> Layout:
        """The layout that `forward` takes and `backward` gives."""
        return self.walk.source.layout

    @property
    def output_layout(self) -> Layout:
        """The layout that `forward` gives and `backward` takes."""
        return self.walk.target.layout

    @property
    def input_distribution(self) -> Distribution:
        """The input's layout on its shape and grid: `f.input_distribution.local_shape(rank)` is that of a block."""
        return self.walk.source

    @property
    def output_distribution(self) -> Distribution:
        """The output's layout on its shape and grid, which may be another grid than that of the input."""
        return self.walk.target

    @property
    def grid(self) -> Grid:
        """The grid of `input_layout`."""
        return self.walk.source.grid

    @property
    def axes(self) -> tuple[int, ...]:
        """The transformed axes, numbered from 0, in NumPy's order: the one that is halved is the last."""
        return self._axes

    @property
    def moves(self) -> tuple[Plan, ...]:
        """The plans of the forward walk's moves, in order: one per redistribution between two transforms."""
        return self.walk.moves

    def tasks(self) -> Tasks:
        """The moves and the local work of `forward`, as `rote.predict` sees them.

        Examples
        --------
        >>> from rote.fft import FFT
        >>> [work.kind for work in FFT((8, 8), "block[(0),()]").tasks().every]
        ['fft', 'fft']
        """
        return self.walk.tasks()

    @property
    def workspace_bytes(self) -> int:
        """The bytes that this rank needs besides input and output: two of the largest blocks or messages of the walk.

        Both directions use the same memory. Messages may be in the output for a while, or next to the blocks
        ("pipelined"); fields may take 2 MiB more. The memory is allocated at the first run, or when all ranks first ask
        for it: collective until then.
        """
        return self._bound().nbytes

    @property
    def libraries(self) -> tuple[str, ...]:
        """The packages that transform the blocks of this rank in both directions, by name, in alphabetical order."""
        pair = self._bound()
        return tuple(sorted(pair.forward.libraries | pair.backward.libraries))

    @property
    def tried(self) -> tuple[Tried, ...]:
        """The walks that were timed, now or earlier, the one that is taken first; empty if none was."""
        return () if self._tuned is None else self._tuned.tried

    def forward(self, x: DistTensor, out: DistTensor | None = None, norm: str | None = None) -> DistTensor:
        """The spectrum of x, in `output_layout`; x keeps its values, unless `out` shares its memory.

        Parameters
        ----------
        x : DistTensor
            Of `input_shape`, `input_dtype` and `input_layout`; or a field, with whole modes in front of these, as
            `empty_input((3,))` makes it: small components travel in one exchange, large ones one after the other.
        out : DistTensor, optional
            The tensor to write into, as `empty_output` makes it; it may share x's memory. A new one if None.
        norm : str, optional
            Of this call; that of the transform if None. The first call with another norm binds it, in the same scratch
            memory; `backward` undoes `forward` of the same norm.

        Raises
        ------
        LayoutError
            x or `out` does not have the transform's shape, layout and dtype; or there is no such norm.
        TypeError
            One is not a tensor.

        Examples
        --------
        >>> import rote
        >>> f = rote.fft.FFT(4, "block[(0)]", dtype="f8")
        >>> x = rote.DistTensor.from_global([1.0, 2.0, 3.0, 4.0], f.input_layout)
        >>> f.forward(x).to_global()
        array([10.+0.j, -2.+2.j, -2.+0.j])
        >>> f.forward(x, norm="forward").to_global()
        array([ 2.5+0.j , -0.5+0.5j, -0.5+0.j ])
        """
        return self._run(x, out, norm, back=False)

    def backward(self, X: DistTensor, out: DistTensor | None = None, norm: str | None = None) -> DistTensor:
        """The tensor of a spectrum, in `input_layout`; X keeps its values, unless `out` shares its memory.

        Arguments as `forward`, in the other direction: X is as `forward` returns it.

        Raises
        ------
        LayoutError
            X or `out` does not have the transform's shape, layout and dtype.

        Examples
        --------
        >>> import rote
        >>> f = rote.fft.FFT(4, "block[(0)]", dtype="f8")
        >>> x = rote.DistTensor.from_global([1.0, 2.0, 3.0, 4.0], f.input_layout)
        >>> f.backward(f.forward(x), out=x) is x
        True
        """
        return self._run(X, out, norm, back=True)

    def empty_input(self, components: Sequence[int] | int = ()) -> DistTensor:
        """A new tensor of the shape, dtype and layout that `forward` takes, whose elements are not set yet.

        Parameters
        ----------
        components : Sequence[int] | int, optional
            The extents of whole modes in front of these, of a field; 3 of vectors, (3, 3) of tensors.

        Raises
        ------
        LayoutError
            A component is not an extent.

        Examples
        --------
        >>> from rote.fft import FFT
        >>> f = FFT((4, 6), "block[(0),()]", dtype="f8")
        >>> x = f.empty_input()
        >>> x.local[...] = 1
        >>> f.forward(x).to_global()[0, 0]
        np.complex128(24+0j)
        >>> f.empty_input(3)
        DistTensor((3, 4, 6), float64, 'block[(),(0),()]', grid=(1,), rank=0, local=(3, 4, 6))
        """
        return empty(with_components(self.walk.source, tensor_shape(components)), self.input_dtype, self._comm)

    def empty_output(self, components: Sequence[int] | int = ()) -> DistTensor:
        """A new tensor of the shape, dtype and layout that `forward` gives, whose elements are not set yet.

        Parameters
        ----------
        components : Sequence[int] | int, optional
            As in `empty_input`.

        Raises
        ------
        LayoutError
            A component is not an extent.

        Examples
        --------
        >>> from rote.fft import FFT
        >>> f = FFT((4, 6), "block[(0),()]", dtype="f8")
        >>> X = f.empty_output()
        >>> X.shape, f.forward(f.empty_input(), out=X) is X
        ((4, 4), True)
        """
        return empty(with_components(self.walk.target, tensor_shape(components)), self.output_dtype, self._comm)

    def wavenumbers(
        self,
        L: float | Sequence[float] = 2 * pi,
        nyquist: Nyquist = "keep",
        axes: Sequence[int] | int | None = None,
        layout: Layout | str | None = None,
    ) -> tuple[Wavenumbers, ...]:
        """The angular wavenumbers 2 pi k / L of the spectrum, as tensors that broadcast to it.

        A derivative along an axis is a product with `1j` times its wavenumbers. For an even extent n, the highest
        wavenumber stands for both signs, k = n/2 and -n/2 (Nyquist's mode). Even derivatives need it, as in
        `-(kx**2 + ky**2)`; odd ones need zero in its place, or that of a real tensor would not be real. Cosine and sine
        transforms have pi k / L, with k + 1 or k + 1/2 for k by kind, and no such mode.

        Parameters
        ----------
        L : float | Sequence[float], optional
            The length of the box, in any unit: one for all axes, or one per axis of `axes`. A periodic box is n
            spacings long, and so is one that is mirrored, but that of "dct1" n - 1 and of "dst1" n + 1.
        nyquist : {'keep', 'zero'}, default 'keep'
            "keep" that wavenumber, for even derivatives, or put "zero" there, for odd ones.
        axes : Sequence[int] | int, optional
            The axes whose wavenumbers are wanted; all that are transformed if None.
        layout : Layout | str, optional
            The layout of the spectrum, if it was redistributed, such as `X.layout`.

        Returns
        -------
        tuple[Wavenumbers, ...]
            One tensor per axis of `axes`, in radians per unit of L and in the transform's real dtype. It has extent 1
            along other axes and is split as the spectrum along its own, so that products with a spectrum, or with a
            field, whose components are in front, move nothing. Where a view fuses or tiles axes, it has the spectrum's
            whole shape and layout. With an array such as X.local it does not combine: for blocks, there is
            `local_wavenumbers`.

        Raises
        ------
        LayoutError
            There are not as many lengths as axes, one is not positive, or `nyquist` is another word; an axis is not
            transformed, or the layout does not fit the spectrum.

        Examples
        --------
        >>> import numpy as np, rote
        >>> f = rote.fft.FFT(8, "block[(0)]", dtype="f8")
        >>> [k.to_global().tolist() for nyquist in ("keep", "zero") for k in f.wavenumbers(nyquist=nyquist)]
        [[0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 3.0, 0.0]]
        >>> X = f.forward(rote.DistTensor.from_function(lambda j: np.sin(np.pi / 4 * j), 8, f.input_layout))
        >>> X *= 1j * f.wavenumbers(nyquist="zero")[0]
        >>> bool(np.allclose(f.backward(X).to_global(), np.cos(np.pi / 4 * np.arange(8))))
        True
        """
        target = spectrum_at(self.walk, layout)
        named = chosen_axes(axes, self._axes, len(target.shape))
        return wavenumber_tensors(self.walk, target, named, self._comm, L, nyquist)

    def local_wavenumbers(
        self,
        L: float | Sequence[float] = 2 * pi,
        nyquist: Nyquist = "keep",
        axes: Sequence[int] | int | None = None,
        layout: Layout | str | None = None,
    ) -> tuple[Array, ...]:
        """The wavenumbers of this rank's block of the spectrum, for loops over blocks.

        Arguments and errors are those of `wavenumbers`.

        Returns
        -------
        tuple[Array, ...]
            One array per axis of `axes`. Together they broadcast to the block, as an open mesh does (`numpy.ogrid`),
            for any layout of the spectrum; and to that of a field, whose components are in front.

        Examples
        --------
        >>> import rote
        >>> f = rote.fft.FFT((4, 8), "block[(0),()]", dtype="f8")
        >>> [k.shape for k in f.local_wavenumbers()]
        [(4, 1), (1, 5)]
        """
        target = spectrum_at(self.walk, layout)
        named = chosen_axes(axes, self._axes, len(target.shape))
        return local_wavenumbers(self.walk, target, named, self._comm, L, nyquist)

    def shell_sums(self, values: DistTensor, L: float | Sequence[float] = 2 * pi) -> Array:
        """The sums of values over shells of wavenumbers: a radial spectrum. Collective.

        Shell n holds the elements with ``n - 1/2 <= |k| < n + 1/2``, where k is the vector of wavenumbers, in
        units of 2 pi over the longest side of the box. Half a spectrum of real numbers stands for all of it: an
        element counts twice, unless it is its own mirror image. With norm="forward", the energy spectrum of a
        velocity field u is `f.shell_sums(abs(f.forward(u)) ** 2) / 2`, and its sum is the mean of u²/2.

        Parameters
        ----------
        values : DistTensor
            Real numbers in the layout of the spectrum; or with components in front, which are added.
        L : float | Sequence[float], optional
            The length of the box, as for `wavenumbers`.

        Returns
        -------
        Array
            The sums of all shells from 0 to the farthest corner, in double precision, the same on all ranks.

        Raises
        ------
        LayoutError
            `values` has another layout or is complex, or L does not fit.
        TypeError
            `values` is not a tensor.

        Examples
        --------
        >>> import numpy as np, rote
        >>> f = rote.fft.FFT((8, 8), "block[(0),()]", dtype="f8", norm="forward")
        >>> waves = lambda i, j: 2 * np.cos(np.pi / 4 * i) + np.sin(np.pi / 2 * j)
        >>> u = rote.DistTensor.from_function(waves, (8, 8), f.input_layout)
        >>> (f.shell_sums(abs(f.forward(u)) ** 2) / 2).round(12).tolist()
        [0.0, 1.0, 0.25, 0.0, 0.0, 0.0, 0.0]
        """
        check_tensor(values, "shell_sums")
        if values.comm is not self._comm:
            raise LayoutError(_FOREIGN)
        return shell_sums(self.walk, self._axes, values, L)

    def to_html(self) -> str:
        """A page that steps through the walk in a browser, complete in itself like that of `Plan.to_html`.

        Examples
        --------
        >>> import rote
        >>> "Stage 1 of 1: fft(0)" in rote.fft.FFT(4, "block[(0)]").to_html()
        True
        """
        return str(late("html.walks:walk_page")(self.walk, self.axes, str(self)))

    def _repr_html_(self) -> str:
        return str(late("html.walks:walk_card")(self.walk, self.axes))

    def _bound(self, norm: str | None = None) -> Pair:
        """Both directions, bound to memory and to the other ranks. Collective for the first call of a norm.

        All norms use one scratch memory, one after the other.
        """
        name = self._norm if norm is None else check_norm(norm)
        if name not in self._pairs:
            with self._lock, time_limit(self._options.tune_seconds):
                scratch = next((pair.workspace.scratch for pair in self._pairs.values()), None)
                if name not in self._pairs:  # another thread may have been faster
                    self._pairs[name] = bind_pair(self.walk, self._comm, name, self._options, scratch)
        return self._pairs[name]

    def _run(self, x: DistTensor, out: DistTensor | None, norm: str | None, back: bool) -> DistTensor:
        if not isinstance(x, DistTensor) or not isinstance(out, DistTensor | None):
            name = "backward" if back else "forward"
            check_tensor(x, name)
            check_tensor(out, f"{name}'s out")

        if x.comm is not self._comm:
            raise LayoutError(_FOREIGN)

        pair = self._bound(norm)
        bound = pair.backward if back else pair.forward
        if records_open.get():
            list_moves(bound.walk, x, "backward" if back else "forward")
        with self._lock:
            return transformed(bound, x, out, pair.fields)

    def __copy__(self) -> Self:
        return self  # a plan never changes, and keeps no values between two calls

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a transform is not pickled, for its communicator lives in this run only\n"
            f"keep its text, which makes it again: {self!r}"
        )

    def __repr__(self) -> str:
        walk = self.walk
        kinds = {axis: walk.kinds[axis] for axis in self._axes}
        what = f"axes={self._axes}" if {*kinds.values()} <= {*FOURIER} else f"kinds={kinds}"
        lengths = "".join(f", {name}={along}" for name, along in self._lengths.items())
        norm = "" if self._norm == "backward" else f", norm={self._norm!r}"
        wire = "" if walk.wire is None else f", wire={walk.wire!r}"
        return (
            f"FFT({self.shape}, {str(self.input_layout)!r}, grid={self.grid.shape}, dtype={str(walk.dtype)!r}, "
            f"{what}{lengths}{norm}, output={str(self.output_layout)!r}{wire})"
        )

    def __str__(self) -> str:
        ranked = compared(self._choices, self.walk)
        lines = [describe(self.walk, self._axes), *ranked]
        if self._pairs:  # until then no library is taken
            how = "by timed samples" if any(pair.sampled for pair in self._pairs.values()) else "as usual, untimed"
            lines.append(f"  transformed by {', '.join(self.libraries) or 'no library'}, {how}")
        if self.tried:
            lines.append(str(self._tuned))
        return "\n".join(lines)
