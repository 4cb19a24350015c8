"""``make check`` refuses migrations that would lock a table in use, or rewrite it. 002 §9, W-19."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.missing_programs import missing

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "howto" / "change-the-schema.md"
CHECK = ROOT / "scripts" / "check-migrations"

pytestmark = pytest.mark.skipif(not (ROOT / ".venv" / "bin" / "squawk").exists(), reason=missing("squawk"))

ALONE = "-- headrace: no-transaction\n"
REFUSED = {
    "a rewrite": ("ALTER TABLE headrace.tasks ALTER COLUMN title TYPE text;", "changing-column-type"),
    "a default that differs by row": (
        "ALTER TABLE headrace.tasks ADD COLUMN seen timestamptz DEFAULT clock_timestamp();",
        "adding-field-with-default",
    ),
    "another storage": ("ALTER TABLE headrace.rate_limits SET LOGGED;", "rewrites the table"),
    "one phase instead of two": (
        "ALTER TABLE headrace.tasks ADD COLUMN region text NOT NULL;",
        "adding-required-field",
    ),
    "NOT NULL without a proof": (
        "ALTER TABLE headrace.tasks ALTER COLUMN queue_seq SET NOT NULL;",
        "adding-not-nullable-field",
    ),
    "a unique constraint before its index": (
        "ALTER TABLE headrace.tasks ADD CONSTRAINT uk_tasks_title UNIQUE (title);",
        "disallowed-unique-constraint",
    ),
    "a contraction that says not for whom": (
        "-- squawk-ignore ban-drop-column\nALTER TABLE headrace.tasks DROP COLUMN title;",
        "say -- headrace: needs NNNN",
    ),
    "an index that stops writers": (
        "CREATE INDEX idx_tasks_title ON headrace.tasks (title);",
        "require-concurrent-index-creation",
    ),
    "an index that is dropped under a lock": (
        "DROP INDEX headrace.idx_tasks_created_at;",
        "require-concurrent-index-deletion",
    ),
    "CONCURRENTLY in a transaction": (
        "ALTER TABLE headrace.tasks ADD COLUMN region text;\n"
        "CREATE INDEX CONCURRENTLY idx_tasks_region ON headrace.tasks (region);",
        "ban-concurrent-index-creation-in-transaction",
    ),
    "a CHECK that is proved under a lock": (
        "ALTER TABLE headrace.tasks ADD CONSTRAINT ck_tasks_title CHECK (title <> '');",
        "constraint-missing-not-valid",
    ),
    "a CHECK and its proof in one transaction": (
        "ALTER TABLE headrace.tasks ADD CONSTRAINT ck_tasks_title CHECK (title <> '') NOT VALID;\n"
        "ALTER TABLE headrace.tasks VALIDATE CONSTRAINT ck_tasks_title;",
        "constraint-missing-not-valid",
    ),
    "a foreign key": (
        "ALTER TABLE headrace.tasks ADD CONSTRAINT fk_tasks_users_title "
        "FOREIGN KEY (title) REFERENCES headrace.users (id);",
        "adding-foreign-key-constraint",
    ),
    "a name that running programs use": (
        "ALTER TABLE headrace.tasks RENAME COLUMN title TO name;",
        "renaming-column",
    ),
    "a column that running programs use": ("ALTER TABLE headrace.tasks DROP COLUMN title;", "ban-drop-column"),
    "every row in one transaction": ("UPDATE headrace.tasks SET title = upper(title);", "headrace.backfill"),
    "rows deleted in one transaction": ("DELETE FROM headrace.task_logs;", "headrace.backfill"),
    "a lock": ("LOCK TABLE headrace.tasks;", "locks a table"),
    "SQL that is none": ("ALTER TABLE headrace.tasks AD COLUMN title;", "syntax"),
}
ACCEPTED = {
    "a column that may be null": "ALTER TABLE headrace.tasks ADD COLUMN region varchar(8);",
    "a column with one value": "ALTER TABLE headrace.tasks ADD COLUMN region varchar(8) NOT NULL DEFAULT 'eu';",
    "a promise for new rows": "ALTER TABLE headrace.tasks ADD CONSTRAINT ck_x CHECK (title <> '') NOT VALID;",
    "its proof": ALONE + "ALTER TABLE headrace.tasks VALIDATE CONSTRAINT ck_x;",
    "an index beside the writers": ALONE + "CREATE INDEX CONCURRENTLY idx_x ON headrace.tasks (title);",
    "a unique constraint from its index": "ALTER TABLE headrace.tasks ADD CONSTRAINT uk_x UNIQUE USING INDEX uk_x;",
    "a new table with all it needs": (
        "CREATE TABLE headrace.regions (id bigserial PRIMARY KEY, name varchar(64) NOT NULL, size integer,\n"
        "  CONSTRAINT uk_regions_name UNIQUE (name));\n"
        "CREATE INDEX idx_regions_size ON headrace.regions (size);\n"
        "COMMENT ON TABLE headrace.regions IS 'Regions.';\n"
        "GRANT SELECT ON headrace.regions TO headrace_app;"
    ),
    "few rows, and it says so": "-- headrace: few rows\nUPDATE headrace.queues SET paused = false;",
    "a column nobody uses any more": (
        "-- headrace: needs 0031\n-- squawk-ignore ban-drop-column\nALTER TABLE headrace.tasks DROP COLUMN title;"
    ),
    "a backfill": ALONE + "CALL headrace.backfill('headrace.tasks', 'region = ''eu''', 'region IS NULL');",
}


def check(folder: Path, script: str, number: int = 99) -> tuple[int, str]:
    (folder / f"{number:04}_example.up.sql").write_text(script + "\n")
    done = subprocess.run([CHECK, folder], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(("script", "says"), REFUSED.values(), ids=REFUSED)
def test_it_refuses(tmp_path: Path, script: str, says: str) -> None:
    code, said = check(tmp_path, script)
    assert code != 0
    assert says in said


@pytest.mark.parametrize("script", ACCEPTED.values(), ids=ACCEPTED)
def test_it_accepts(tmp_path: Path, script: str) -> None:
    code, said = check(tmp_path, script)
    assert code == 0, said


def test_the_baseline_makes_empty_tables_and_is_excepted(tmp_path: Path) -> None:
    script, _ = REFUSED["an index that stops writers"]
    assert check(tmp_path, script, number=12)[0] == 0
    assert check(tmp_path, script, number=13)[0] != 0


def test_what_the_page_recommends_is_accepted(tmp_path: Path) -> None:
    scripts = re.findall(
        r"```sql\n((?:-- headrace: no-transaction\n)?-- (\S+\.up\.sql)\n.*?)```", PAGE.read_text(), re.DOTALL
    )
    assert len(scripts) == 4
    for script, name in scripts:
        (tmp_path / name).write_text(script)
    done = subprocess.run([CHECK, tmp_path], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_migration_keeps_the_rules() -> None:
    subprocess.run([CHECK], check=True, timeout=60)
