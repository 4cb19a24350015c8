"""The console in a real browser, in front of a whole Headrace: one of each for all of them.

They are skipped, with a word, where Chromium or the built console is missing.
"""

import asyncio
import queue
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from headrace.web.console import BUILT
from tests.accounts.smtp import Mailbox, open_mailbox
from tests.clusters import copy_cluster, migrated_cluster
from tests.console.site import CHROMIUM, FLAGS, Person, Site
from tests.e2e.program import layout_of
from tests.memory import room
from tests.missing_programs import missing

PATIENCE_MS = 60_000  # for a machine that is busy with other things
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="package")
def mailbox() -> Iterator[Mailbox]:
    """The SMTP server of the site, in a thread with an event loop of its own."""
    opened: queue.Queue[tuple[Mailbox, asyncio.AbstractEventLoop, asyncio.Event]] = queue.Queue()

    async def serve() -> None:
        ended = asyncio.Event()
        async with open_mailbox() as mailbox:
            opened.put((mailbox, asyncio.get_running_loop(), ended))
            await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    mailbox, loop, ended = opened.get(timeout=60)
    yield mailbox
    loop.call_soon_threadsafe(ended.set)
    thread.join()


@pytest.fixture(scope="package")  # of the session, it would run on beside all other tests
def site(mailbox: Mailbox) -> Iterator[Site]:
    if not Path(CHROMIUM).exists():
        pytest.skip(missing("Chromium"))
    if not (BUILT / "index.html").exists():
        pytest.skip(missing("the console"))
    folder = Path(tempfile.mkdtemp(prefix="console ", dir=room())).resolve()
    folder.chmod(0o755)
    copy_cluster(migrated_cluster(), layout_of(folder).home)
    running = Site(folder, mail_port=mailbox.port)
    running.start()
    yield running
    running.stop()
    shutil.rmtree(folder)


@pytest.fixture(scope="package")
def browser(site: Site) -> Iterator[Browser]:
    # Not of the session: it has an event loop of its own, which tests of other packages would stumble over.
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def person(site: Site) -> Iterator[Person]:
    """Somebody with an account, and their own way to the API."""
    with httpx2.Client(base_url=site.url, timeout=60) as client:
        yield Person.register(client)


@pytest.fixture
def context(site: Site, browser: Browser, person: Person) -> Iterator[BrowserContext]:
    """A browser in which this person is signed in; nothing it does may leave the server's own address."""
    opened = browser.new_context(base_url=site.url, locale="en-GB", viewport={"width": 1280, "height": 900})
    opened.set_default_timeout(PATIENCE_MS)
    person.enter(opened)
    asked: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    yield opened
    opened.close()
    elsewhere = [url for url in asked if not url.startswith((site.url, site.pay_url, "blob:", "data:"))]
    assert elsewhere == []


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    opened = context.new_page()
    broken: list[str] = []
    opened.on("pageerror", lambda error: broken.append(str(error)))
    # What the policy forbids is told on the browser's console.
    opened.on("console", lambda said: broken.append(said.text) if "Content Security Policy" in said.text else None)
    yield opened
    assert broken == []


@pytest.fixture
def site_admin(site: Site) -> Iterator[Person]:
    assert site.admin is not None
    with httpx2.Client(base_url=site.url, timeout=60) as client:
        yield Person.log_in(client, *site.admin)
