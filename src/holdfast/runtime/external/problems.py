"""What the errors of external agents mean: nobody is logged in, the quota is used up, or something else. Pure.

Agents report the same thing in many ways; what each of them says was tried with a model that refuses (docs/agents.md).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import ModelFailed, WaitOpened
from holdfast.domain.next_step import wait_id
from holdfast.domain.session import Session
from holdfast.domain.turn_fold import KEEP_WAITING, TRY_AGAIN
from holdfast.runtime.external.configuration import ExternalCommand

LOGIN_CODES = frozenset({-32000, 401})
"""Of the protocol, and of agents that repeat the status of their provider."""
LOGIN_KINDS = frozenset({"authentication_failed", "oauth_org_not_allowed", "unauthorized"})
QUOTA_CODES = frozenset({402, 429})
QUOTA_KINDS = frozenset({"rate_limit", "billing_error", "usageLimitExceeded", "usage_limit_reached"})
"""What agents put beside the message, as in `errorKind` (claude) or `codexErrorInfo` (codex)."""
LOGIN_WORDS = re.compile(
    r"\b401\b|authentication (is )?required|failed to authenticate|invalid authentication|not logged in|not signed in"
    r"|(run|use) /login|(log|sign) in again|invalid (api|x-api).?key|incorrect api key|unauthori[sz]ed"
    r"|token (has |is )?(expired|revoked)",
    re.I,
)
QUOTA_WORDS = re.compile(
    r"\b429\b|usage limit|rate limit|(exceeded|exhausted|used up|insufficient|out of).{0,40}(quota|credit)"
    r"|quota.{0,40}(exceeded|exhausted|used up)|hit your.{0,20}limit|limit reached|credit balance is too low",
    re.I,
)
MINUTE_MS = 60_000
LONGEST_MS = 32 * 24 * 3_600_000
"""No quota lasts longer than a month: a time that is further away was not understood."""
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
SPAN = re.compile(
    r"\bin (?:about )?((?:\d+(?:\.\d+)?\s*(?:d|h|m|s)[a-z]*(?:,?\s*(?:and\s*)?)?)+)|\bafter (\d+) ?s(?:econds)?\b", re.I
)
PART = re.compile(r"(\d+(?:\.\d+)?)\s*([dhms])", re.I)
STAMP = re.compile(r"\|(1\d{9})\b|\b(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)")
DAY_TIME = re.compile(
    r"\b(?:at|resets)\s+(?:at\s+)?(?:([A-Z][a-z]{2,8}) (\d{1,2})(?:st|nd|rd|th)?,?(?: (\d{4}))?,?(?: at)?\s+)?"
    r"(\d{1,2})(?::(\d\d))?\s*([ap]m)\b(?:\s*\((UTC|GMT)\))?",
    re.I,
)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def problem_of(
    agent: ExternalCommand,
    said: str,
    *,
    now: int,
    code: int = 0,
    kinds: frozenset[str] = frozenset(),
    zone: tzinfo | None = None,
) -> Problem:
    """Return what an error of an agent means. `kinds` are the words of other fields than the message, `zone` is that
    of the times that it names without one: by default the machine's, which is also the agent's.
    """
    said = said.strip().rstrip(".")
    if code in LOGIN_CODES or kinds & LOGIN_KINDS:
        return login_problem(agent, said)
    if code in QUOTA_CODES or kinds & QUOTA_KINDS or QUOTA_WORDS.search(said):
        return quota_problem(agent, said, now=now, zone=zone)
    if LOGIN_WORDS.search(said):
        return login_problem(agent, said)
    return Problem(code="agent_failed", message=f"{agent.name} reports an error: {said}.")


def login_problem(agent: ExternalCommand, said: str) -> Problem:
    """Return the problem of an agent that nobody is logged in to."""
    hint = f"Log in: `{agent.login}`" if agent.login else "Log in with the agent's own command."
    return Problem(code="agent_login", message=f"{agent.name} is not logged in: {said}.", hint=hint)


def quota_problem(agent: ExternalCommand, said: str, *, now: int, zone: tzinfo | None = None) -> Problem:
    """Return the problem of an agent whose quota is used up, with the time until it is there again, if that is said."""
    at = reset_time(said, now=now, zone=zone)
    if at is None:
        hint = "It does not say when there will be more."
    else:
        hint = f"There will be more at {datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M} UTC."
    message = f"The quota of {agent.name} is used up: {said}."
    return Problem(code="quota", message=message, hint=hint, after_ms=None if at is None else at - now)


def wait_after(session: Session, failed: ModelFailed, agent: ExternalCommand, *, now: int) -> WaitOpened | None:
    """Return the wait that takes the place of a failure which a person or the time can mend; None for all others."""
    turn, problem = session.turn, failed.problem
    assert turn is not None
    reason = f"{problem.message} {problem.hint}".strip()
    match problem.code:
        case "agent_login":
            return WaitOpened(
                turn=turn.number, wait=wait_id(session, turn), purpose="login", reason=reason, choices=[TRY_AGAIN]
            )
        case "quota":
            until = None
            if agent.resume_after_quota and not turn.quota_waits and problem.after_ms is not None:
                until = now + max(0, problem.after_ms)
            return WaitOpened(
                turn=turn.number,
                wait=wait_id(session, turn),
                purpose="quota",
                reason=reason,
                choices=[TRY_AGAIN] if until is None else [TRY_AGAIN, KEEP_WAITING],
                until=until,
                default=None if until is None else TRY_AGAIN,
            )
        case _:
            return None


def without_countdown(session: Session, kept: WaitOpened) -> WaitOpened:
    """Return a wait that is opened again after a person cancelled its countdown."""
    turn = session.turn
    assert turn is not None
    return WaitOpened(
        turn=turn.number, wait=wait_id(session, turn), purpose=kept.purpose, reason=kept.reason, choices=[TRY_AGAIN]
    )


# --- when ---------------------------------------------------------------------------------------


def reset_time(said: str, *, now: int, zone: tzinfo | None = None) -> int | None:
    """Return the time that a message names, in milliseconds since 1970: `in 2 hours`, `at 5:59 AM`, an ISO time or the
    seconds since 1970. None if it names none, or one that cannot be meant.
    """
    found = _span(said, now) or _stamp(said, zone) or _day_time(said, now, zone)
    return found if found is not None and now < found <= now + LONGEST_MS else None


def _span(said: str, now: int) -> int | None:
    found = SPAN.search(said)
    if found is None:
        return None
    if found[2]:
        return now + int(found[2]) * 1000
    seconds = sum(float(number) * UNITS[unit.lower()] for number, unit in PART.findall(found[1]))
    return now + round(seconds * 1000)


def _stamp(said: str, zone: tzinfo | None) -> int | None:
    found = STAMP.search(said)
    if found is None:
        return None
    if found[1]:
        return int(found[1]) * 1000
    at = datetime.fromisoformat(found[2])
    return _in_ms(at if at.tzinfo is not None else at.replace(tzinfo=zone))


def _day_time(said: str, now: int, zone: tzinfo | None) -> int | None:
    """Return the next time of the day that is named, in the zone of the machine unless it says UTC."""
    found = DAY_TIME.search(said)
    if found is None:
        return None
    month, day, year, hour, minute, half, utc = found.groups()
    local = datetime.fromtimestamp(now / 1000, UTC if utc else zone)
    if not 1 <= int(hour) <= 12:
        return None
    try:
        at = local.replace(
            hour=int(hour) % 12 + 12 * (half.lower() == "pm"), minute=int(minute or 0), second=0, microsecond=0
        )
        if month is not None:
            number = MONTHS.index(month[:3].lower()) + 1
            at = at.replace(year=int(year or at.year), month=number, day=int(day))
            return _in_ms(at if year or at > local else at.replace(year=at.year + 1))
    except ValueError:  # no such month, day or hour
        return None
    return _in_ms(at if at > local else at + timedelta(days=1))


def _in_ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)
