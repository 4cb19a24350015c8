"""Settings that change while the product runs: typed by key, for everyone, a tenant or a user."""

from typing import TYPE_CHECKING

from headrace import lazily

if TYPE_CHECKING:
    from headrace.configs.cache import Configs, open_configs
    from headrace.configs.erasure import ForgetConfigs
    from headrace.configs.keys import GENERAL
    from headrace.configs.model import Config, ConfigScope, Place
    from headrace.configs.registry import ConfigKey, Registry
    from headrace.configs.service import get_config, identifier, list_configs, set_active, set_config, unset_config

__all__ = [
    "GENERAL",
    "Config",
    "ConfigKey",
    "ConfigScope",
    "Configs",
    "ForgetConfigs",
    "Place",
    "Registry",
    "get_config",
    "identifier",
    "list_configs",
    "open_configs",
    "set_active",
    "set_config",
    "unset_config",
]

__getattr__ = lazily.names_of(
    __name__,
    {
        "cache": "Configs open_configs",
        "erasure": "ForgetConfigs",
        "keys": "GENERAL",
        "model": "Config ConfigScope Place",
        "registry": "ConfigKey Registry",
        "service": "get_config identifier list_configs set_active set_config unset_config",
    },
)
