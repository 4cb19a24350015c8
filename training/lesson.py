"""One step of learning. On a GPU it is compiled, recorded after a few tries, and then played back.

Convolutions this narrow are bound by what is read and written between them, which fused kernels save; and playing back
leaves the host free to prepare the next batch.
"""

from typing import Any, Protocol

import torch
from torch import Tensor, nn


class Pupil(Protocol):
    """A network with what it is taught."""

    network: nn.Module
    names: tuple[str, ...]  # of the parts of the loss

    def batch(self, count: int, side: int) -> tuple[Tensor, ...]:
        """Tensors to learn from, the network's own input first."""

    def judge(self, *batch: Tensor) -> tuple[Tensor, Tensor]:
        """The sum to minimise, and its parts."""


class Lesson:
    tries = 3
    ENCODER_RATE = 0.3  # of the others': its weights come from ImageNet

    def __init__(self, pupil: Pupil, device: torch.device) -> None:
        self._pupil, self._fast, self._tried = pupil, device.type == "cuda", 0
        self._rate, self._encoder_rate = torch.zeros((), device=device), torch.zeros((), device=device)
        self._optimiser = torch.optim.AdamW(
            _groups(pupil.network, self._rate, self._encoder_rate),
            lr=self._rate,
            betas=(0.9, 0.99),
            fused=self._fast,
            capturable=self._fast,
        )
        self._judge = torch.compile(self._judged, dynamic=False) if self._fast else self._judged
        self._recorded: torch.cuda.CUDAGraph | None = None
        if self._fast:
            self._stream = torch.cuda.Stream(device)
        self._parts = torch.zeros(0)

    def learn(self, batch: tuple[Tensor, ...], rate: float) -> Tensor:
        """Learn from a batch, which must be the same tensors every time; the parts of the loss."""
        self._rate.fill_(rate)
        self._encoder_rate.fill_(rate * self.ENCODER_RATE)
        if self._recorded is None and self._tried == self.tries:
            self._record(batch)
        if self._recorded is not None:
            self._recorded.replay()
            return self._parts
        if not self._fast:
            return self._once(batch)
        self._tried += 1
        # On the stream that it will be recorded on, as recording demands.
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            parts = self._once(batch)
        torch.cuda.current_stream().wait_stream(self._stream)
        return parts

    def _once(self, batch: tuple[Tensor, ...]) -> Tensor:
        self._optimiser.zero_grad(set_to_none=True)
        total, parts = self._judge(*batch)
        total.backward()
        nn.utils.clip_grad_norm_(self._pupil.network.parameters(), 1.0)
        self._optimiser.step()
        return parts

    def _judged(self, *batch: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast(batch[0].device.type, torch.bfloat16, enabled=self._fast):
            return self._pupil.judge(*batch)

    def _record(self, batch: tuple[Tensor, ...]) -> None:
        recorded = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recorded, stream=self._stream, capture_error_mode="thread_local"):
            self._parts = self._once(batch)
        self._recorded = recorded


def _groups(network: nn.Module, rate: Tensor, encoder_rate: Tensor) -> list[dict[str, Any]]:
    groups = []
    for in_encoder, its_rate in ((False, rate), (True, encoder_rate)):
        learned = [p for name, p in network.named_parameters() if name.startswith("encoder.") == in_encoder]
        kernels, others = [p for p in learned if p.ndim > 1], [p for p in learned if p.ndim <= 1]
        groups.append({"params": kernels, "weight_decay": 1e-2, "lr": its_rate})
        groups.append({"params": others, "weight_decay": 0.0, "lr": its_rate})
    return [group for group in groups if group["params"]]
