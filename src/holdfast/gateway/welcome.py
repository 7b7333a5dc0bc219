"""What a gateway in the foreground prints at its start."""

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
from holdfast.external_agents import installed_agents
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
        """Whether to print a sign-in link. Without a terminal it would end up in a log."""
        return self.browser or sys.stdout.isatty()

    async def show(self, home: Home, gateway: Gateway) -> None:
        """Print where the gateway runs and what to do next; open a browser if requested."""
        link = await sign_in_link(gateway) if self.link else ""
        print_welcome(home, gateway, link)
        if self.browser and link:
            show_in_browser(home, link)


def _who_answers(profiles: Profiles, program: str) -> str:
    """Return what answers in new sessions, and how to add a model if there is none."""
    name = profiles.default
    model = profiles.settings.profiles[name].model
    if model == DEMO and not profiles.detected:
        none = "No model was found, so the demo agent answers: a script, no AI.\n"
        if (installed := installed_agents()) and name == DEMO:
            first = installed[0]
            return f"{none}{first.title} is installed; let it work here: {program} agents add {first.name}"
        return f"{none}How to connect a model: {program} models"
    how = next((found.how for found in profiles.detected if found.provider == name), "set in config.toml")
    return f"New sessions use the profile {name} with {model}: {how}."


def _program(home: Home) -> str:
    """Return how to call the program: in a checkout by its path, and with `--home` if it is not the default."""
    here, program = Path.cwd(), Path(sys.argv[0]).absolute()
    name = str(program.relative_to(here)) if program.is_relative_to(here) else "holdfast"
    return name if home == find_home() else f"{name} --home {shlex.quote(str(home.path))}"


async def sign_in_link(gateway: Gateway) -> str:
    """Return a sign-in link that works once; empty if the code cannot be stored."""
    try:
        return f"{gateway.url}/#code={(await gateway.devices.add_code()).code}"
    except HoldfastError as error:
        log.warning("no sign-in code could be created: %s", error)
        return ""


def show_in_browser(home: Home, link: str) -> None:
    """Open a browser if there is a screen, in a thread: some browsers return only when they are closed."""
    if has_screen():
        threading.Thread(target=open_in_browser, args=(home.run, link), daemon=True).start()


def print_welcome(home: Home, gateway: Gateway, link: str) -> None:
    """Print where it runs and what can be done now."""
    program = _program(home)
    dashboard = f"Dashboard (the link works once, for 10 minutes):\n  {link}\nA new link: " if link else "Dashboard: "
    sys.stdout.write(
        f"Holdfast {__version__} is running at {gateway.url}\n"
        f"Home: {home.path}\n"
        f"{_who_answers(gateway.profiles, program)}\n"
        f"{dashboard}{program} open\n"
        "\n"
        "Try this in another terminal, with the demo agent:\n"
        f'  {program} run --profile demo "say hello"\n'
        f'  {program} run --profile demo --detach "slow 60 one two three four"\n'
        "Then kill this gateway (kill -9), start it again, and look:\n"
        f"  {program} sessions log ID\n"
        "\n"
        "Ctrl-C ends the gateway: turns resume at the next start, commands keep running.\n"
    )
    sys.stdout.flush()
