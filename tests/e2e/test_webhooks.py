"""`headrace up`, an endpoint made over HTTP, `headrace webhooks listen` beside it: the event is printed. W-13."""

import re
from pathlib import Path

import httpx2
import pytest

from tests.clusters import copy_cluster, migrated_cluster
from tests.e2e.conftest import Start
from tests.e2e.program import CHEAP, eventually, layout_of, log_in

pytestmark = pytest.mark.long

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8G"


def test_a_signed_event_is_printed(folder: Path, start: Start) -> None:
    copy_cluster(migrated_cluster(), layout_of(folder).home)
    up = start("up", folder=folder, settings=CHEAP)
    up.until_ready()
    assert "Webhooks  may go to this machine" in up.out
    token = log_in(up.url(), *up.login()).json()["token"]
    (folder / "secret").write_text(f"{SECRET}\n")
    listening = start("webhooks", "listen", "--port", "0", "--secret-file", str(folder / "secret"), folder=folder)
    assert eventually(lambda: "listening at" in listening.err)
    address = re.search(r"http://\S+/", listening.err)
    assert address is not None
    with httpx2.Client(base_url=up.url(), headers={"Authorization": f"Bearer {token}"}) as client:
        body = {"name": "mine", "url": address[0], "subscribed_events": ["task.*"], "secret": SECRET}
        made = client.post("/v1/webhooks/endpoints", json=body)
        assert made.status_code == 201, made.text
        tested = client.post(f"/v1/webhooks/endpoints/{made.json()['id']}/test").json()
        assert eventually(lambda: f"webhook.test  {tested['event_id']}  ok" in listening.out), listening.out
        assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC  webhook.test", listening.out, re.MULTILINE)
    assert SECRET not in up.out + up.err
    assert listening.stop() == 0
    assert up.stop() == 0
