"""``headrace up --pay-locally``: a developer buys a plan with nothing but this machine. W-11."""

import re
from pathlib import Path

import httpx2
import pytest

from tests.clusters import copy_cluster, migrated_cluster
from tests.e2e.conftest import Start
from tests.e2e.program import CHEAP, eventually, layout_of, log_in, run_program

pytestmark = pytest.mark.long

PRO = {"name": "Pro", "price_cents": 2900, "monthly_quota": 500}


def test_a_plan_is_bought_on_the_page_and_is_there(folder: Path, start: Start) -> None:
    copy_cluster(migrated_cluster(), layout_of(folder).home)
    running = start("up", "--pay-locally", folder=folder, settings=CHEAP)
    running.until_ready()
    token = log_in(running.url(), *running.login()).json()["token"]
    page = re.search(r"Pay +(http://127\.0\.0\.1:\d+)/", running.out)
    assert page is not None, running.out
    with httpx2.Client(
        base_url=running.url(), headers={"Authorization": f"Bearer {token}"}, timeout=60, trust_env=False
    ) as api:
        api.post("/v1/admin/plans", json=PRO).raise_for_status()
        ordered = api.post("/v1/subscriptions", json={"plan": "Pro"}).raise_for_status().json()
        number = ordered["order"]["id"]
        assert ordered["order"]["code_url"].startswith(page[1])
        shown = httpx2.get(ordered["order"]["code_url"], timeout=60, trust_env=False)
        assert number in shown.text
        action, fields = form(shown.text, "pay")
        assert httpx2.post(f"{page[1]}{action}", data=fields, timeout=60, trust_env=False).status_code in (200, 303)
        # WeChat Pay's notice comes by itself.
        assert eventually(lambda: api.get(f"/v1/payments/{number}").json()["status"] == "PAID")
        seen = api.get(f"/v1/subscriptions/{ordered['subscription']['id']}").json()
        assert seen["status"] == "ACTIVE"
        assert 500 in {each["quota_left"] for each in api.get("/v1/entitlements").json()["items"]}
    keys = folder / ".headrace" / "pay-locally"
    assert all(file.stat().st_mode & 0o077 == 0 for file in keys.iterdir() if "key" in file.name)
    assert running.stop() == 0


def form(page: str, act: str) -> tuple[str, dict[str, str]]:
    """Where a form of the page is sent, and what it sends along unseen."""
    for found in re.finditer(r"<form[^>]*action=\"([^\"]+)\"[^>]*>(.*?)</form>", page, re.DOTALL):
        if found[1].endswith(f"/{act}"):
            hidden = re.findall(r"name=\"([^\"]+)\" value=\"([^\"]*)\"", found[2])
            return found[1], dict(hidden)
    raise AssertionError(page)


@pytest.mark.slow
def test_beside_a_real_merchant_it_is_refused(folder: Path) -> None:
    copy_cluster(migrated_cluster(), layout_of(folder).home)
    real = {
        "HEADRACE_WECHATPAY_MCH_ID": "1900000001",
        "HEADRACE_WECHATPAY_APP_ID": "wx1",
        "HEADRACE_WECHATPAY_CERT_SERIAL": "AB",
        "HEADRACE_WECHATPAY_PRIVATE_KEY_FILE": "key.pem",
        "HEADRACE_WECHATPAY_API_V3_KEY": "0" * 32,
        "HEADRACE_API_PUBLIC_URL": "https://headrace.example",
    }
    done = run_program("up", "--pay-locally", folder=folder, settings=CHEAP | real)
    assert (done.code, "--pay-locally stands in for WeChat Pay" in done.err) == (2, True), done.err
