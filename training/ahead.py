"""Batches made ahead of their use: the device draws the next one while the network learns from this one."""

import contextlib
import queue
import threading

import torch

from training.lesson import Pupil

Batch = tuple[torch.Tensor, ...]

_DEPTH = 3


class Ahead:
    """A thread and a stream for synthesis, which is hundreds of small launches and would leave the device waiting.

    One thread, one generator of numbers: the same seed still gives the same batches in the same order.
    """

    def __init__(self, pupil: Pupil, device: torch.device, count: int, side: int) -> None:
        self._pupil, self._device, self._shape = pupil, device, (count, side)
        self._ready: queue.Queue[tuple[Batch, torch.cuda.Event] | BaseException] = queue.Queue(_DEPTH)
        self._ended = threading.Event()
        self._kept: Batch | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """From here on batches are made ahead; where there is no GPU, and before, when they are asked for."""
        if self._device.type == "cuda":
            self._thread = threading.Thread(target=self._make, daemon=True)
            self._thread.start()

    def next(self) -> Batch:
        """The next batch; its tensors are written anew by the next call."""
        if self._thread is None:
            return self._put(self._pupil.batch(*self._shape))
        made = self._ready.get()
        if isinstance(made, BaseException):
            raise made
        batch, event = made
        torch.cuda.current_stream().wait_event(event)
        for tensor in batch:
            tensor.record_stream(torch.cuda.current_stream())
        return self._put(batch)

    def _put(self, batch: Batch) -> Batch:
        """Into the same tensors, with the same strides, every time: what was compiled and recorded reads those."""
        if self._kept is None:
            self._kept = _like(batch)
        for kept, fresh in zip(self._kept, batch, strict=True):
            kept.copy_(fresh)
        return self._kept

    def end(self) -> None:
        self._ended.set()
        while self._thread is not None and self._thread.is_alive():
            with contextlib.suppress(queue.Empty):
                self._ready.get(timeout=0.1)

    def _make(self) -> None:
        try:
            with torch.cuda.stream(stream := torch.cuda.Stream(self._device)):
                while not self._ended.is_set():
                    batch = self._pupil.batch(*self._shape)
                    event = torch.cuda.Event()
                    event.record(stream)
                    self._ready.put((batch, event))
        except BaseException as error:  # noqa: BLE001 - raised again where the batch is wanted
            self._ready.put(error)


def _like(batch: Batch) -> Batch:
    def empty(tensor: torch.Tensor, layout: torch.memory_format) -> torch.Tensor:
        return torch.empty(tensor.shape, device=tensor.device, memory_format=layout)

    first, *others = batch
    return empty(first, torch.channels_last), *(empty(tensor, torch.contiguous_format) for tensor in others)
