"""In-process ranks that stay: they wait for work, all do the same, and hand back what each of them got."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import rote

__all__ = ["Disagreement", "Team"]

PATIENCE = 10.0  # seconds for which an answer of one rank waits for those of the others
AFTER_AN_ERROR = 2.0  # and an error: the others wait for that rank, most likely


class Disagreement(AssertionError):
    """Ranks gave different answers, or some gave none: what Rote never does."""


class Team:
    """Ranks inside one `rote.run`, led by the thread that asks them.

    A rank that raises stays with the others. Where ranks part (one raises while others wait for it in a collective
    call), the team is over, and the next call has a new one; tensors of the old are of no use then.
    """

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self._thread: threading.Thread | None = None

    def call(self, work: Callable[[int], Any]) -> list[Any]:
        """Have every rank do `work(rank)`; their results, or the error that all of them raised.

        Raises:
            Disagreement: some raised and some did not, or not the same type, or some gave no answer.
        """
        if self._thread is None:
            self._start()
        for inbox in self._inboxes:
            inbox.put(work)
        answers: dict[int, tuple[bool, Any]] = {}
        while len(answers) < self.ranks:
            try:
                patience = AFTER_AN_ERROR if _bad(answers) else PATIENCE
                rank, good, value = self._answers.get(timeout=patience if answers else None)
            except queue.Empty:
                break
            answers[rank] = (good, value)
        if len(answers) < self.ranks or any(not isinstance(value, Exception) for good, value in _bad(answers)):
            raise Disagreement(self._over(answers))
        errors = [value for _, value in _bad(answers)]
        if not errors:
            return [answers[rank][1] for rank in range(self.ranks)]
        if len(errors) < self.ranks or len({type(error) for error in errors}) > 1:
            raise Disagreement(_described(answers))
        raise errors[0]

    def _start(self) -> None:
        self._inboxes: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in range(self.ranks)]
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._verdict: BaseException | None = None
        # Settings are context variables, which a new thread does not have by itself.
        self._thread = threading.Thread(target=copy_context().run, args=(self._lead,), daemon=True)
        self._thread.start()

    def _lead(self) -> None:
        try:
            rote.run(self._serve, ranks=self.ranks, on="threads")
        except Exception as error:
            self._verdict = error

    def _serve(self, comm: Any) -> None:
        inbox, answers = self._inboxes[comm.rank], self._answers
        while (work := inbox.get()) is not None:
            try:
                answer = (comm.rank, True, work(comm.rank))
            except Exception as error:
                answer = (comm.rank, False, error)
            except BaseException as error:  # this rank was released: the run has failed
                answers.put((comm.rank, False, error))
                raise
            answers.put(answer)
            del work, answer  # or it would hold the tensors of this call until the next

    def _over(self, answers: dict[int, tuple[bool, Any]]) -> str:
        """End the team; what the ranks have said, and Rote's verdict on those that wait for ever."""
        assert self._thread is not None
        for inbox in self._inboxes:
            inbox.put(None)
        self._thread.join(PATIENCE)
        self._thread = None
        return _described(answers) + (f"\n{self._verdict}" if self._verdict else "")


def _bad(answers: dict[int, tuple[bool, Any]]) -> list[tuple[bool, Any]]:
    return [answer for answer in answers.values() if not answer[0]]


def _described(answers: dict[int, tuple[bool, Any]]) -> str:
    lines = [
        f"rank {rank} {'returned' if good else 'raised'} {value if good else repr(value)}"
        for rank, (good, value) in sorted(answers.items())
    ]
    return "ranks disagree\n" + "\n".join(lines)
