"""Errors of the embedded PostgreSQL.

HeadraceError
├── Invalid
│   ├── FolderNotWritable   the data folder is not ours to write in
│   ├── FolderUnusable      the data folder holds something else
│   ├── AccountUnknown      there is no account that the server could run as
│   ├── OtherMajorVersion   the data was written by a PostgreSQL that we do not have
│   └── SettingRefused      a setting that is ours to decide, or is no setting at all
├── Conflict
│   ├── PortTaken           the requested port is not free
│   ├── RunsDifferently     it already runs, with other options
│   └── ForeignServer       another process runs a server on our data
└── Unavailable
    ├── BinariesMissing     there is no PostgreSQL to start
    ├── DiskFull            the disk has no room left
    ├── PrivilegesMissing   root cannot hand the server over to an ordinary user
    ├── DidNotStart         the server came up with an error, or not at all
    └── StillBusy           another process holds the folder for too long

Every message is one line with a remedy. The errors arise in the keeper and are raised in the waiting process, so
they travel as JSON: ``pack`` and ``unpack``.
"""

from headrace.errors import Conflict, HeadraceError, Invalid, Unavailable


class FolderNotWritable(Invalid):
    """The data folder of the embedded PostgreSQL cannot be written."""

    code = "embedded_folder_not_writable"


class FolderUnusable(Invalid):
    """The data folder of the embedded PostgreSQL holds something else."""

    code = "embedded_folder_unusable"


class AccountUnknown(Invalid):
    """There is no account that the embedded PostgreSQL could run as."""

    code = "embedded_account_unknown"


class OtherMajorVersion(Invalid):
    """The data was written by another major version of PostgreSQL."""

    code = "embedded_other_major_version"


class SettingRefused(Invalid):
    """This PostgreSQL setting cannot be given."""

    code = "embedded_setting_refused"


class PortTaken(Conflict):
    """The port for the embedded PostgreSQL is taken."""

    code = "embedded_port_taken"


class RunsDifferently(Conflict):
    """The embedded PostgreSQL runs already with other settings."""

    code = "embedded_runs_differently"


class ForeignServer(Conflict):
    """A PostgreSQL that is not ours runs on the data folder."""

    code = "embedded_foreign_server"


class BinariesMissing(Unavailable):
    """There are no PostgreSQL programs to start."""

    code = "embedded_binaries_missing"


class DiskFull(Unavailable):
    """The disk is full."""

    code = "embedded_disk_full"


class PrivilegesMissing(Unavailable):
    """The embedded PostgreSQL cannot be handed to an ordinary user."""

    code = "embedded_privileges_missing"


class DidNotStart(Unavailable):
    """The embedded PostgreSQL did not start."""

    code = "embedded_did_not_start"


class WasKilled(DidNotStart):
    """The embedded PostgreSQL, its keeper or another process that started it was killed in the middle.

    Not an error of its own to callers: it tells ``attach`` that to try again may help.
    """


class StillBusy(Unavailable):
    """Another process is busy with the embedded PostgreSQL."""

    code = "embedded_still_busy"


_BY_CODE: dict[str, type[HeadraceError]] = {
    kind.code: kind
    for kind in (
        FolderNotWritable,
        FolderUnusable,
        AccountUnknown,
        OtherMajorVersion,
        SettingRefused,
        PortTaken,
        RunsDifferently,
        ForeignServer,
        BinariesMissing,
        DiskFull,
        PrivilegesMissing,
        DidNotStart,
        StillBusy,
    )
}


def pack(error: HeadraceError) -> dict[str, object]:
    """Give the error as plain JSON; details that JSON does not know become text."""
    plain = {
        key: value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
        for key, value in error.details.items()
    }
    return {"code": error.code, "message": error.message, "details": plain}


def unpack(packed: dict[str, object]) -> HeadraceError:
    """Make the error again that ``pack`` was given."""
    details = packed.get("details")
    kind = _BY_CODE.get(str(packed.get("code")), DidNotStart)
    return kind(str(packed.get("message")), **(details if isinstance(details, dict) else {}))
