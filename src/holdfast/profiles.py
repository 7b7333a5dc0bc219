"""The settings in force: profiles by name, their limits, the rules for resets, and the values that are masked.

`config.toml` is looked at before every step, so a change takes effect at once; while it has an error
the last good settings stay in force and the error is shown. Where several nodes share settings (`shared_settings.py`),
the file has only what is about its machine.
Not here: the models that profiles name (`models/registry.py`), and profiles as agents (`runtime/agents.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from holdfast.config import ConfigError, environment
from holdfast.domain.context_limits import CompactionRules
from holdfast.domain.events.chapter import ResetPolicy
from holdfast.domain.next_step import TurnLimits
from holdfast.domain.reset import ResetRules
from holdfast.edit_settings import SettingsChange, edit_file
from holdfast.external_agents import DriverName
from holdfast.read_settings import load_settings
from holdfast.secrets import Secrets, is_path
from holdfast.settings import DEMO, DEMO_PROFILE, ProfileSettings, Settings, of_this_machine, span_ms
from holdfast.timings import USUAL

WORKSPACES = "workspaces"
"""The directory of the home in which cards are worked on."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Detected:
    """A provider that can be used as it is."""

    provider: str
    how: str
    """Why it is there, without the key."""
    models: tuple[str, ...]


class SettingsEditor(Protocol):
    """Changes settings that are not in config.toml."""

    async def edit(self, change: SettingsChange, *, by: str) -> None:
        """SettingsChange them, and have them in force. ConfigError if that cannot be."""
        ...


class Profiles:
    """The configured profiles by name, with one for every provider that was detected."""

    def __init__(self, path: Path, *, minute_ms: int = USUAL.minute_ms) -> None:
        self.path = path
        self._minute_ms = minute_ms
        self._stamp = self._look()
        self._in_force: Settings | None = None
        self.file = load_settings(path)
        """What config.toml says."""
        self._shared: Settings | None = None
        self.shared: SettingsEditor | None = None
        """What changes the settings of all nodes; None where they are in config.toml."""
        self._use(self.file)
        self.detected: Sequence[Detected] = ()
        self.problem = ""
        """What is wrong with the settings, while the last good ones stay in force."""

    @property
    def settings(self) -> Settings:
        """The settings in force. The same object until one of them changes."""
        self._read_changes()
        if self._in_force is None:
            found = {
                known.provider: ProfileSettings(model=f"{known.provider}:{known.models[0]}")
                for known in self.detected
                if known.models
            }
            self._in_force = replace(self._written, profiles=found | self._written.profiles)
        return self._in_force

    @property
    def newest_file(self) -> Settings:
        """What config.toml says now; while it has an error, what it said before. The same object until it changes."""
        self._read_changes()
        return self.file

    def _read_changes(self) -> None:
        stamp = self._look()
        if stamp != self._stamp:
            self._stamp = stamp
            self._reload()

    def _look(self) -> tuple[int, int]:
        """When the file was changed, and its size. On the loop: a thread would take ten times as long, and the home is
        on a local disk (SQLite needs that too).
        """
        try:
            found = self.path.stat()
        except OSError:
            return (0, 0)
        return (found.st_mtime_ns, found.st_size)

    def _reload(self) -> None:
        try:
            self.file = load_settings(self.path)
            self._use(self.file if self._shared is None else of_this_machine(self._shared, self.file))
            self.problem = ""
            log.info("the settings were reloaded")
        except ConfigError as error:
            self.problem = str(error)
            log.error("the settings have an error, so the previous ones stay in force: %s", error)

    def _use(self, settings: Settings) -> None:
        self._written, self._in_force = settings, None
        values = {name: environment(name) for name in settings.secret_names}
        given = settings.secret_names - settings.key_names
        self.secrets = Secrets({n: v for n, v in values.items() if n not in given or not is_path(v or "")})

    def use_shared(self, settings: Settings) -> None:
        """Have these settings, with what config.toml says about this machine."""
        self._shared = settings
        self._use(of_this_machine(settings, self.file))

    async def edit(self, change: SettingsChange, *, by: str) -> None:
        """SettingsChange the settings where they are. ConfigError if that cannot be."""
        if self.shared is not None:
            await self.shared.edit(change, by=by)
        else:
            await asyncio.to_thread(edit_file, self.path, change)

    def use_detected(self, found: Sequence[Detected]) -> None:
        """Have a profile for each of these providers from now on, unless config.toml has one of that name."""
        self.detected = found
        self._in_force = None

    def mask(self, text: str) -> str:
        """What goes into the log without any agent's doing, such as the end of a command, without keys."""
        return self.secrets.mask(text)

    # --- profiles -------------------------------------------------------------------------------

    @property
    def default(self) -> str:
        """The profile of a session that names none: the chosen one, else the first detected, else the demo."""
        usable = [known.provider for known in self.detected if known.models]
        return self.settings.default_profile or next(iter(usable), DEMO)

    @property
    def names(self) -> list[str]:
        """All of them."""
        return sorted(self.settings.profiles)

    @property
    def configured(self) -> set[str]:
        """Those that config.toml names."""
        return set(self._written.profiles) - ({DEMO} if self._written.profiles[DEMO] is DEMO_PROFILE else set())

    def limits(self, profile: str, *, window: int | None) -> TurnLimits:
        """What a turn with this profile may take, if the window of its model is known to be this."""
        settings = self.settings
        chosen, rules = settings.profiles.get(profile, ProfileSettings()), settings.compaction
        return TurnLimits(
            steps=chosen.max_steps,
            tokens=chosen.max_tokens,
            minutes=chosen.max_minutes,
            minute_ms=self._minute_ms,
            resume_attempts=settings.resume.attempts,
            resume_age_ms=settings.resume.max_age_minutes * self._minute_ms,
            compaction=CompactionRules(
                threshold=rules.threshold,
                limit=rules.limit,
                keep_recent=rules.keep_recent,
                on_failure=rules.on_failure,
            ).within(window),
        )

    def driver(self, profile: str) -> DriverName:
        """What runs the turns of its sessions."""
        return self.settings.profiles.get(profile, ProfileSettings()).driver_name

    def resume_policy(self, profile: str) -> Literal["auto", "resume", "fresh"]:
        """Whether its workers on the board continue the session of the last."""
        return self.settings.profiles.get(profile, ProfileSettings()).resume or self.settings.board.resume

    # --- resets ---------------------------------------------------------------------------------

    def reset_rules(self, profile: str, policy: ResetPolicy) -> ResetRules:
        """The rules of a session: its own policy, then its profile's, then `[session_reset]`."""
        usual = ResetRules()

        def chosen(name: str, otherwise: Any) -> Any:
            found = self._reset_level(profile, policy, name)
            return otherwise if found is None else getattr(found[1], name)

        def span(name: str, otherwise: int) -> int:
            found = span_ms(chosen(name, ""))
            return otherwise if found is None else found

        return ResetRules(
            mode=chosen("mode", usual.mode),
            idle_ms=chosen("idle_minutes", usual.idle_ms // USUAL.minute_ms) * self._minute_ms,
            at_hour=chosen("at_hour", usual.at_hour),
            timezone=chosen("timezone", usual.timezone),
            max_postpone_ms=span("max_postpone", usual.max_postpone_ms),
            process_max_age_ms=span("process_max_age", usual.process_max_age_ms),
            on_live_process=chosen("on_live_process", usual.on_live_process),
            hand_over_note=chosen("hand_over_note", usual.hand_over_note),
            notify=chosen("notify", usual.notify),
        )

    def reset_origins(self, profile: str, policy: ResetPolicy) -> dict[str, str]:
        """Where each of them was set: `session`, `profile`, `config`, or nowhere, which is `default`."""
        levels = {name: self._reset_level(profile, policy, name) for name in ResetPolicy.__struct_fields__}
        return {name: "default" if found is None else found[0] for name, found in levels.items()}

    def _reset_level(self, profile: str, policy: ResetPolicy, name: str) -> tuple[str, object] | None:
        of_profile = self.settings.profiles.get(profile, ProfileSettings()).session_reset
        levels = (("session", policy), ("profile", of_profile), ("config", self.settings.session_reset))
        return next((level for level in levels if getattr(level[1], name) is not None), None)
