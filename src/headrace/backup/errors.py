"""Errors of backups."""

from headrace.errors import Conflict, Denied, Invalid


class BackupExists(Conflict):
    """There is a file of this name already: take another name, or say --force."""

    code = "backup_exists"


class BackupDamaged(Invalid):
    """This is no backup of Headrace, or it is not whole."""

    code = "backup_damaged"


class BackupTooNew(Conflict):
    """The backup is of a newer Headrace: update the program."""

    code = "backup_too_new"


class BackupRefused(Denied):
    """Something that belongs into the backup may not be read."""

    code = "backup_refused"


class TargetNotEmpty(Conflict):
    """There is data in the target already."""

    code = "restore_target_not_empty"


class TargetInUse(Conflict):
    """Other processes use the target: stop them first."""

    code = "restore_target_in_use"


class OtherSecretKey(Conflict):
    """The backup was made with another secret key."""

    code = "restore_other_secret_key"


class RestoreFailed(Invalid):
    """The target refuses the contents of the backup."""

    code = "restore_failed"
