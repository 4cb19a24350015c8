"""Errors of configs.

NotFound   ConfigNotFound · UnknownConfigKey
Invalid    InvalidConfigValue · InvalidConfigScope
"""

from headrace.errors import Invalid, NotFound


class ConfigNotFound(NotFound):
    """This key has no value for this scope."""

    code = "config_not_found"


class UnknownConfigKey(NotFound):
    """There is no such config key; `GET /v1/admin/configs/keys` lists them."""

    code = "unknown_config_key"


class InvalidConfigValue(Invalid):
    """The value does not match the schema of this key."""

    code = "invalid_config_value"


class InvalidConfigScope(Invalid):
    """GLOBAL has no scope_id; TENANT and USER need one, for USER the user's id."""

    code = "invalid_config_scope"
