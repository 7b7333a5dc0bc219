"""`holdfast serve`, `shutdown`, `restart`, `status`, `logs`, `doctor`, `open`, `devices`, `completion`: the gateway."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import click

from holdfast.cli.context import Cli, home_option, pass_cli
from holdfast.cli.errors import FAILED, UNREACHABLE, USAGE, CliError
from holdfast.cli.groups import NounGroup, verb
from holdfast.cli.hints import program
from holdfast.cli.render.inbox import counts_text
from holdfast.cli.screen import (
    Column,
    ago,
    clean,
    details_short,
    dim,
    duration,
    format_datetime,
    one_line,
    pad,
    plural,
    shorten,
    table,
    terminal_width,
    wrap,
)
from holdfast.cli.values import SESSION, TEXT, Number
from holdfast.client.errors import GatewayNotRunning
from holdfast.client.http import Address, quote
from holdfast.config import ConfigError
from holdfast.schemas.devices import DeviceList, DeviceView, LoggedIn, SignInCode
from holdfast.schemas.gateway import Status

LISTED = 20
POLL_SECONDS = 0.2
LEVEL_COLORS = {"warning": "yellow", "error": "red", "critical": "red"}
DEVICES = (Column("ID"), Column("NAME", flexible=True), Column("SIGNED IN"), Column("SEEN"), Column("OPEN", right=True))
INSTALL = {
    "bash": 'add to ~/.bashrc:  eval "$(holdfast completion bash)"',
    "zsh": 'add to ~/.zshrc:  eval "$(holdfast completion zsh)"',
    "fish": "holdfast completion fish > ~/.config/fish/completions/holdfast.fish",
}


# --- start and stop -------------------------------------------------------------------------------


@click.command()
@click.option(
    "--port",
    type=Number(0, 65_535),
    metavar="N",
    help="The port on 127.0.0.1; 0 takes any free port. By default as set in config.toml.",
)
@click.option(
    "--store",
    default="",
    metavar="ADDRESS",
    help="Keep the log in PostgreSQL: postgresql://user@host/database, without a password (docs/cluster.md).",
)
@click.option(
    "--node",
    default="",
    metavar="NAME",
    help="The name of this gateway among those on the same database. By default as in config.toml, else the host name.",
)
@click.option("--open", "browser", is_flag=True, help="Open the dashboard in a browser, if there is a screen.")
@click.option("--background", is_flag=True, hidden=True, help="Print nothing: another command started it.")
@home_option
@pass_cli
def serve(cli: Cli, port: int | None, store: str, node: str, browser: bool, background: bool) -> int:
    """Run the gateway in this terminal. Ctrl-C ends it: turns resume at the next start, commands keep running."""
    with suppress(OSError, ConfigError):  # whatever is wrong is said below
        umask = cli.home.prepare()
        cli.home.starting.write_text(f"{os.getpid()}\n")  # clients wait for it while the program is loaded
        os.umask(umask)
    from holdfast.app import AskedStore, serve

    asked = AskedStore(store, node)
    return serve(cli.home, port=port, background=background, browser=browser, store=asked)


@verb()
def shutdown(cli: Cli) -> None:
    """Stop the gateway and wait until it has ended. Open turns are suspended and resume at the next start.

    Commands that it started keep running; they are listed.
    """
    from holdfast.client.launch import stop

    try:
        running = cli.client.tasks.list(state="running", limit=500).tasks
    except GatewayNotRunning as error:
        raise CliError(error.message, code=UNREACHABLE) from error  # the usual hint says how to start one
    pid = stop(cli.client).pid
    if cli.json:
        cli.print_json({"pid": pid})
        return
    cli.echo(f"the gateway (pid {pid}) has ended; open turns resume at the next start")
    commands = [task for task in running if task.kind == "process" and task.pid is not None]
    if commands:
        cli.echo(f"{plural(len(commands), 'command')} still running:")
    for task in commands[:LISTED]:
        cli.echo(f"  {task.id}  pid {task.pid}  {shorten(one_line(task.title), 60)}")
    if len(commands) > LISTED:
        cli.echo(f"  … and {len(commands) - LISTED} more")


@verb()
def restart(cli: Cli) -> None:
    """Restart the gateway at the same port, or start one in the background if none is running. Open turns resume.

    It gets the environment of this terminal and keeps its process ID. If config.toml is invalid, the running
    gateway stays as it is.
    """
    from holdfast.client.launch import restart

    done = restart(cli.client)
    old, new = done.old, done.new
    if old is not None:
        text = f"the gateway (pid {new.pid}) has restarted at {new.url}"
    else:
        text = f"no gateway was running; started one at {new.url}"
    cli.result(text, pid=new.pid, stopped=old.pid if old is not None else None, url=new.url)


# --- look -----------------------------------------------------------------------------------------


@verb()
def status(cli: Cli) -> None:
    """Show the address of the gateway, what it holds and what is running."""
    cli.show(cli.client.get("/v1/status"), Status, _render_status)


def _render_status(found: Status) -> str:
    archived = f", {found.archived:,} archived" if found.archived else ""
    sessions, messages = plural(found.sessions, "session"), plural(found.messages, "message")
    rows = [
        ("gateway", f"{found.version}, pid {found.pid}"),
        ("url", found.url),
        ("home", found.home),
        ("up", f"{duration(found.uptime_ms)}, since {format_datetime(found.started_at)}"),
        ("holds", f"{sessions}{archived}, {messages}, {plural(found.events, 'event')}"),
        ("waits for you", f"{counts_text(found.inbox)} ({program()} inbox)" if found.inbox else "nothing"),
        ("working", ", ".join(found.working) or "nothing"),
        ("tasks", f"{found.tasks:,} running ({program()} tasks)" if found.tasks else "none running"),
    ]
    if found.writable:
        return details_short(rows)
    problem = click.style("the disk cannot be written:", fg="red", bold=True)
    return f"{details_short(rows)}\n{problem} {clean(found.problem)} Reads still work, and it recovers by itself."


@verb()
@click.option(
    "--rebuild", is_flag=True, help="Rebuild everything that is derived from the log; stop the gateway first."
)
def doctor(cli: Cli, rebuild: bool) -> int:
    """Check the home: settings, keys, disk, sandbox, database. Changes nothing without --rebuild."""
    from holdfast.lifecycle import doctor

    if rebuild:
        said = doctor.rebuild(cli.home)
        cli.result(said, rebuilt=said)
        return 0
    from dataclasses import asdict

    findings = doctor.examine(cli.any_home)
    is_well = all(finding.ok for finding in findings)
    if cli.json:
        cli.print_json({"ok": is_well, "findings": [asdict(finding) for finding in findings]})
        return 0 if is_well else FAILED
    widest = max(len(finding.name) for finding in findings)
    indent = 4 + 2 + widest + 2
    for finding in findings:
        mark = click.style("ok  ", fg="green") if finding.ok else click.style("FAIL", fg="red", bold=True)
        text = clean(finding.detail) + (f"\nhint: {finding.hint}" if finding.hint else "")
        lines = wrap(text, max(20, terminal_width() - indent))
        cli.echo(f"{mark}  {pad(finding.name, widest)}  " + f"\n{'':{indent}}".join(lines))
    return 0 if is_well else FAILED


# --- the log --------------------------------------------------------------------------------------


@verb()
@click.option("--follow", "-f", is_flag=True, help="Keep printing new lines; Ctrl-C stops watching.")
@click.option("--lines", "-n", type=Number(min=0), default=50, show_default=True, help="How many lines.")
def logs(cli: Cli, follow: bool, lines: int) -> None:
    """Show the end of the gateway's log; works without a gateway. With --json: one object per line."""
    path = cli.home.log
    if not path.exists() and not follow:
        cli.note(f"No log yet: no gateway has run in {cli.home.path}.")
        return
    try:
        for line in _followed_lines(path, lines) if follow else _last_lines(path, lines):
            cli.echo(_json_line(line) if cli.json else _readable_line(line))
    except KeyboardInterrupt:
        cli.note("")


def _last_lines(path: Path, count: int) -> list[str]:
    with path.open("rb") as log:
        return _end_of(log, count)


def _end_of(log: BinaryIO, count: int) -> list[str]:
    return [line.decode("utf-8", "replace").rstrip("\n") for line in deque(log, count)]


def _followed_lines(path: Path, count: int) -> Iterator[str]:
    """Like `tail -F`: a rotated file is followed by its successor."""
    while not path.exists():
        time.sleep(POLL_SECONDS)
    log = path.open("rb")
    try:
        yield from _end_of(log, count)
        rest = b""
        while True:
            if piece := log.read():
                *whole, rest = (rest + piece).split(b"\n")
                yield from (line.decode("utf-8", "replace") for line in whole)
                continue
            if _was_rotated(path, log):
                log.close()
                log = path.open("rb")
            else:
                time.sleep(POLL_SECONDS)
    finally:
        log.close()


def _was_rotated(path: Path, log: BinaryIO) -> bool:
    try:
        return not os.path.samestat(path.stat(), os.fstat(log.fileno()))
    except FileNotFoundError:
        return False


def _parse_line(line: str) -> dict[str, object] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _json_line(line: str) -> str:
    """What a crash wrote beside the log is no JSON; it becomes a message."""
    return line if _parse_line(line) is not None else json.dumps({"message": line}, ensure_ascii=False)


def _readable_line(line: str) -> str:
    entry = _parse_line(line)
    if entry is None:
        return clean(line)
    at, level, logger, message = (str(entry.get(name, "")) for name in ("at", "level", "logger", "message"))
    shown = f"{level:<7}"
    if level in LEVEL_COLORS:
        shown = click.style(shown, fg=LEVEL_COLORS[level])
    trace = f"\n{clean(str(entry['trace']))}" if entry.get("trace") else ""
    return f"{dim(_local_time(at))}  {shown}  {dim(logger.removeprefix('holdfast.'))}  {clean(message)}{trace}"


def _local_time(at: str) -> str:
    """`2026-11-15T22:00:01.123Z` as local date and time."""
    import calendar

    try:
        return format_datetime(calendar.timegm(time.strptime(at[:19], "%Y-%m-%dT%H:%M:%S")) * 1000)
    except ValueError:
        return at


# --- browsers -------------------------------------------------------------------------------------


@verb()
@click.argument("session", type=SESSION, required=False)
@click.option("--print", "only_print", is_flag=True, help="Only print the address.")
@click.option("--phone", is_flag=True, help="Print a link for another device, at the first of the public_urls.")
def open(cli: Cli, session: str | None, only_print: bool, phone: bool) -> None:
    """Open the dashboard, or SESSION in it, in a browser. The link signs one browser in, once, within 10 minutes.

    Without a screen, or if CI is set, it only prints the link. Starts a gateway if none is running.
    """
    from holdfast.config import has_screen, open_in_browser

    address = cli.start_gateway()
    base = _public_url(address) if phone else address.url
    path = f"/s/{cli.client.sessions.get(session).session.id}" if session is not None else "/"
    code = cli.client.post(SignInCode, "/v1/codes")
    url = f"{base}{path}#code={code.code}"
    cli.result(url, url=url, expires_at=code.expires_at)
    if cli.json or only_print or phone:
        return
    if not has_screen() or not open_in_browser(cli.home.run, url):
        cli.note("no browser was opened here; the link works once, within 10 minutes")


def _public_url(address: Address) -> str:
    if not address.public_urls:
        raise CliError(
            "The gateway has no address for other devices.",
            hint='Set `public_urls = ["https://…"]` under [gateway] in config.toml and restart it; see docs/deploy.md.',
            code=USAGE,
        )
    return address.public_urls[0]


@click.group(cls=NounGroup, default="list")
def devices() -> None:
    """List the browsers that are signed in, and sign them out. Without a verb: list."""


@devices.verb("Show", "list")
def list_devices(cli: Cli) -> None:
    """List the browsers that are signed in, when each was last used, and how many connections it has open."""
    cli.show(cli.client.get("/v1/devices"), DeviceList, _devices_table)


def _devices_table(found: DeviceList) -> str:
    if not found.devices:
        return f"No browser is signed in. Try: {program()} open"
    return table(DEVICES, [_device_cells(device) for device in found.devices])


def _device_cells(device: DeviceView) -> list[str]:
    return [device.id, device.name, ago(device.created_at), ago(device.seen_at), str(device.connected)]


@devices.verb("Change")
@click.argument("device", type=TEXT)
def revoke(cli: Cli, device: str) -> None:
    """Sign DEVICE out: its cookie is invalid at once, and its open connections are closed."""
    gone = cli.client.post(LoggedIn, f"/v1/devices/{quote(device)}", method="DELETE")
    cli.result(f"{gone.device}: “{clean(gone.name)}” is signed out", device=gone.device, name=gone.name)


# --- the shell ------------------------------------------------------------------------------------


@verb()
@click.argument("shell", type=click.Choice(list(INSTALL)), metavar="SHELL")
def completion(cli: Cli, shell: str) -> None:
    """Print a completion script for SHELL. For bash, add to ~/.bashrc: eval "$(holdfast completion bash)"."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root().command
    script = f"# {INSTALL[shell]}\n{kind(root, {}, 'holdfast', '_HOLDFAST_COMPLETE').source()}"
    cli.result(script, shell=shell, script=script)
