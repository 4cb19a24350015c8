"""What the console's tests work with: a running Headrace, people, and pictures with marks."""

import io
import itertools
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import httpx2
import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import BrowserContext, Page, expect

from tests.e2e.program import CHEAP, Program

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
]
# As a link does: without loading everything anew.
GO = """path => {
  if (!path.startsWith(location.pathname)) document.querySelector('h1')?.setAttribute('data-left', '');
  history.pushState({}, '', path);
  dispatchEvent(new PopStateEvent('popstate'));
}"""
PASSWORD = "the console's tests sign in with this"
_number = itertools.count(1)


class Site:
    """``headrace up`` on a port that it keeps, so that it can be stopped and started under an open page."""

    def __init__(self, folder: Path, *, mail_port: int | None = None) -> None:
        self._folder = folder
        self._mail: dict[str, str] = {}
        if mail_port is not None:
            self._mail = {
                "HEADRACE_SMTP_HOST": "127.0.0.1",
                "HEADRACE_SMTP_PORT": str(mail_port),
                "HEADRACE_SMTP_SECURITY": "none",
                "HEADRACE_SMTP_FROM": "Headrace <no-reply@example.org>",
            }
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._program: Program | None = None
        self.admin: tuple[str, str] | None = None

    def start(self) -> None:
        settings = {**CHEAP, "HEADRACE_API_PORT": str(self._port)}
        settings |= self._mail
        settings |= {"HEADRACE_API_RATE_LIMIT": "6000", "HEADRACE_API_RATE_BURST": "2000"}
        self._program = Program("up", "--pay-locally", folder=self._folder, settings=settings)
        self._program.until_ready(within=120)
        if self.admin is None:
            self.admin = self._program.login()

    @property
    def pay_url(self) -> str:
        """Where the stand-in for WeChat Pay shows its orders."""
        assert self._program is not None
        found = re.search(r"^  Pay       (\S+)", self._program.out, re.MULTILINE)
        assert found is not None
        return found[1]

    def stop(self) -> None:
        assert self._program is not None
        self._program.stop()
        self._program.close()
        self._program = None


@dataclass(frozen=True)
class Person:
    name: str
    client: httpx2.Client

    @classmethod
    def register(cls, client: httpx2.Client) -> "Person":
        name = f"person{next(_number)}"
        answer = client.post("/v1/auth/register", json={"username": name, "password": PASSWORD})
        assert answer.status_code == 201, answer.text
        return cls.log_in(client, name, PASSWORD)

    @classmethod
    def log_in(cls, client: httpx2.Client, name: str, password: str) -> "Person":
        answer = client.post("/v1/auth/login", json={"username": name, "password": password})
        assert answer.status_code == 200, answer.text
        client.cookies.clear()
        client.headers["Authorization"] = f"Bearer {answer.json()['token']}"
        return cls(name, client)

    def enter(self, context: BrowserContext) -> None:
        """Sign a browser in, without its pages."""
        answer = context.request.post("/v1/auth/login", data={"username": self.name, "password": PASSWORD})
        assert answer.ok, answer.text()

    def get(self, path: str, **query: str) -> Any:
        answer = self.client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()


@contextmanager
def paused_media_queue(admin: Person) -> Iterator[None]:
    """Holds every removal before its start: on a fast machine it would be over before the page shows it."""
    paused = admin.client.post("/v1/queues/media/pause?create=true")
    assert paused.status_code == 200, paused.text
    try:
        yield
    finally:
        resumed = admin.client.post("/v1/queues/media/resume")
        assert resumed.status_code == 200, resumed.text


def visit(page: Page, path: str) -> None:
    """Go to a page of the console that is open, and wait until everything on it is there."""
    page.evaluate(GO, path)
    # The page before, and its tab, are there for a moment longer.
    expect(page.locator("h1:not([data-left])")).to_be_visible()
    if tab := re.search("[?]tab=([a-z]+)", path):
        expect(page.locator(f"[role=tab][aria-selected=true][id$='-tab-{tab[1]}']")).to_be_visible()
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


def marked_picture() -> bytes:
    """Soft hills of light with some grain, and a word across them."""
    rng = np.random.default_rng(3)
    soft = cv2.resize(rng.uniform(40, 170, (4, 5, 3)).astype(np.float32), (640, 480), interpolation=cv2.INTER_CUBIC)
    grainy = np.clip(soft + rng.normal(0, 3, soft.shape), 0, 255)
    scene = (grainy + grainy.mean(2, keepdims=True)) / 2  # as pale as a photograph
    ink = np.zeros(scene.shape[:2], np.uint8)
    cv2.putText(ink, "SAMPLE", (90, 270), cv2.FONT_HERSHEY_DUPLEX, 4.0, 255, 14, cv2.LINE_AA)
    alpha = ink[..., None].astype(np.float32) / 255 * 0.45
    marked = np.rint(scene * (1 - alpha) + 255 * alpha).astype(np.uint8)
    done, packed = cv2.imencode(".jpg", marked, [cv2.IMWRITE_JPEG_QUALITY, 95])
    assert done
    return packed.tobytes()


def pixels(content: bytes) -> NDArray[np.uint8]:
    found = cv2.imdecode(np.frombuffer(io.BytesIO(content).getvalue(), np.uint8), cv2.IMREAD_GRAYSCALE)
    assert found is not None
    return found.astype(np.uint8, copy=False)
