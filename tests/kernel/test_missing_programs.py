"""The end of `make test` names each missing program, what it costs and what installs it."""

from types import SimpleNamespace

from tests.missing_programs import missing, summarize


def test_each_missing_program_is_one_line_with_its_cost_and_its_command() -> None:
    reasons = [missing("Chromium"), missing("Chromium"), missing("PgBouncer"), "root may write anywhere"]
    reports = [SimpleNamespace(longrepr=("tests/x.py", 1, f"Skipped: {reason}")) for reason in reasons]
    assert summarize(reports) == [
        "Chromium is missing: 2 tests skipped; install it: apt-get install chromium",
        "PgBouncer is missing: 1 test skipped; install it: apt-get install pgbouncer",
    ]
