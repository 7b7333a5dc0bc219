"""Restarting the gateway in the same process, after a check that it would start."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NoReturn

from holdfast.config import ConfigError, Home, own_environment

CHECK_SECONDS = 30.0


def check_restart(home: Home) -> None:
    """Load the program and the settings from disk in another process. ConfigError says what is wrong."""
    command = [sys.executable, "-P", "-m", "holdfast", "--home", str(home.path), "config", "check"]
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, errors="replace", timeout=CHECK_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"The settings cannot be checked: {error}.") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().removeprefix("error: ")
        raise ConfigError(said or f"`holdfast config check` ended with exit code {done.returncode}.")


def restart_program(home: Home, *, port: int, background: bool, environment: dict[str, str]) -> NoReturn:
    """Replace the program of this process. Its parent, its terminal and the running commands stay."""
    command = [sys.executable, "-P", "-m", "holdfast", "--home", str(home.path), "serve", "--port", str(port)]
    arguments = [*command, *(["--background"] if background else [])]
    os.execve(sys.executable, arguments, own_environment() | environment)  # noqa: S606
