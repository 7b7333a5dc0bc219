"""The settings of a home, for the verbs that show or check them."""

from __future__ import annotations

from holdfast.cli.errors import USAGE, CliError
from holdfast.config import ConfigError, Home
from holdfast.read_settings import load_settings
from holdfast.settings import Settings


def read(home: Home) -> Settings:
    """Read and check them."""
    try:
        return load_settings(home.config)
    except ConfigError as error:
        raise CliError(str(error), hint="`holdfast config check` checks again.", code=USAGE) from error
