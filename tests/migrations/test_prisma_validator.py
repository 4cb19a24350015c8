"""Prisma's own validator reads ``schema.prisma`` without a complaint. W-22

It comes from npm into pytest's cache, once; without node, or where npm cannot get it, the tests are skipped and say so.
"""

import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from tests.missing_programs import missing

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "schema.prisma"
PACKAGE = "@prisma/prisma-schema-wasm"
VERSION = "5.22.0-44.605197351a3c8bdd595af2d2a9bc3025bca48ea2"  # of Prisma 5.22, the last of the 5 that 002 names

VALIDATE = """
const schema = require("fs").readFileSync(0, "utf8");
try {
  require(process.argv[1]).validate(JSON.stringify({ prismaSchema: schema, noColor: true }));
} catch (error) {
  console.log(JSON.parse(error.message).message);
}
"""


@pytest.fixture(scope="module")
def validator(pytestconfig: pytest.Config) -> Path:
    assert pytestconfig.cache is not None
    cache = pytestconfig.cache.mkdir("prisma")
    kept = cache / VERSION
    if not kept.exists():
        if shutil.which("node") is None or shutil.which("npm") is None:
            pytest.skip(missing("npm"))
        fresh = Path(tempfile.mkdtemp(dir=cache))
        options = ("--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--prefix", str(fresh))
        try:
            subprocess.run(
                ["npm", "install", *options, f"{PACKAGE}@{VERSION}"], check=True, capture_output=True, timeout=120
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as exc:
            pytest.skip(f"npm cannot get {PACKAGE}: {(exc.stderr or b'').decode(errors='replace')[-300:]}")
        with suppress(OSError):  # another process was first, and what it put there is whole
            fresh.rename(kept)
    return kept / "node_modules" / PACKAGE


def complaints(validator: Path, schema: str) -> str:
    command = ["node", "--eval", VALIDATE, str(validator)]
    done = subprocess.run(command, input=schema, text=True, capture_output=True, check=True, timeout=120)
    return done.stdout.strip()


def test_prisma_accepts_the_written_schema(validator: Path) -> None:  # W-22
    assert complaints(validator, PAGE.read_text()) == ""


@pytest.mark.parametrize(
    ("there", "instead", "says"),
    [
        ("model users {", "model users {\n  id String @id", 'Field "id" is already defined on model "users"'),
        ("model users {", "model users_ {", "users"),
        (" DateTime ", " Instant ", 'Type "Instant" is neither a built-in type'),
    ],
)
def test_prisma_refuses_what_is_wrong(validator: Path, there: str, instead: str, says: str) -> None:
    schema = PAGE.read_text()
    assert there in schema
    assert says in complaints(validator, schema.replace(there, instead, 1))
