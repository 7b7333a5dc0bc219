"""What a gateway that runs in the foreground prints for the person who started it."""

from __future__ import annotations

import logging
import shlex
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from holdfast import __version__
from holdfast.config import Home, find_home, has_screen, open_in_browser
from holdfast.domain.errors import HoldfastError
from holdfast.gateway.state import Gateway
from holdfast.profiles import Profiles
from holdfast.settings import DEMO

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Welcome:
    """What is printed at the start, and whether a browser is opened."""

    browser: bool

    @property
    def link(self) -> bool:
        """A one-time code is for eyes: where no terminal is, it would stay in somebody's log."""
        return self.browser or sys.stdout.isatty()

    async def show(self, home: Home, gateway: Gateway) -> None:
        """Say what can be done now, and open a browser where one is wanted."""
        link = await sign_in_link(gateway) if self.link else ""
        print_welcome(home, gateway, link)
        if self.browser and link:
            show_in_browser(home, link)


def _who_answers(profiles: Profiles) -> str:
    """Which agent a newcomer gets, and why."""
    name = profiles.default
    model = profiles.settings.profiles[name].model
    if model == DEMO:
        return "No model was found, so the demo agent answers: a script, no AI. `holdfast models` says how to get one."
    how = next((found.how for found in profiles.detected if found.provider == name), "config.toml says so")
    return f"New sessions use the profile {name} with {model}: {how}."


def _program(home: Home) -> str:
    """What to type: out of a checkout its own path, which is not on the PATH; with the home if it has to be named."""
    here, program = Path.cwd(), Path(sys.argv[0]).absolute()
    name = str(program.relative_to(here)) if program.is_relative_to(here) else "holdfast"
    return name if home == find_home() else f"{name} --home {shlex.quote(str(home.path))}"


async def sign_in_link(gateway: Gateway) -> str:
    """Where a browser can look in, once; empty when the disk takes no code."""
    try:
        return f"{gateway.url}/#code={(await gateway.devices.add_code()).code}"
    except HoldfastError as error:
        log.warning("there is no sign-in code: %s", error)
        return ""


def show_in_browser(home: Home, link: str) -> None:
    """In a browser, if there is a screen; nobody waits for it, since some return when they are closed."""
    if has_screen():
        threading.Thread(target=open_in_browser, args=(home.run, link), daemon=True).start()


def print_welcome(home: Home, gateway: Gateway, link: str) -> None:
    """Print where it runs and what can be done now."""
    program = _program(home)
    dashboard = f"In a browser, once and within 10 minutes: {link}\nLater: " if link else "In a browser: "
    sys.stdout.write(
        f"Holdfast {__version__} is running at {gateway.url} (home {home.path}).\n"
        f"{_who_answers(gateway.profiles)}\n"
        f"{dashboard}{program} open\n"
        "Try this in another terminal, with the demo agent:\n"
        f'  {program} run --profile demo "say hello"\n'
        f'  {program} run --profile demo --detach "slow 30 one two three four five six"\n'
        "then kill this gateway (kill -9), start it again, and look:\n"
        f"  {program} sessions log ID\n"
        "Ctrl-C ends the gateway. Agent turns resume at the next start; commands keep running meanwhile.\n"
    )
    sys.stdout.flush()
