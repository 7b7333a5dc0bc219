"""`holdfast inbox` and `answer`: what waits for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.context import Cli
from holdfast.cli.errors import USAGE, CliError
from holdfast.cli.groups import TextCommand, verb
from holdfast.cli.render.inbox import GRANTS, render_inbox, render_wait
from holdfast.cli.screen import clean, one_line
from holdfast.cli.values import SESSION, TEXT, WAIT
from holdfast.client.http import quote
from holdfast.schemas.sessions import Accepted

if TYPE_CHECKING:
    from holdfast.schemas.inbox import WaitView


@verb()
@click.argument("id", type=WAIT, required=False)
@click.option("--dismiss", metavar="ID", type=SESSION, help="Remove the failed turn of session ID from the list.")
def inbox(cli: Cli, id: str | None, dismiss: str | None) -> None:
    """List everything that waits for a person, longest waiting first, each with the commands that answer it.

    These are questions, approvals, interrupted turns, expired log-ins and used-up quotas of agents, blocked cards,
    cards in review, cards that cannot start, and failed turns. A failed turn leaves the list with the next turn of its
    session, when you undo it, reset or archive the session, or with --dismiss.

    With the ID of a question or an approval, or of its session, show it in full: every argument of the call, the
    change of a file, and what each answer allows.
    """
    from holdfast.schemas.inbox import Inbox, WaitDetail

    cli.start_gateway()
    if id is not None:
        wait = cli.show(cli.client.get(f"/v1/inbox/{quote(id)}"), WaitDetail, render_wait).wait
        text = "TEXT, or the number of a choice" if wait.choices else "TEXT"
        cli.hint(f"answer with: holdfast answer {wait.id} {GRANTS if wait.purpose == 'approval' else text}")
    elif dismiss is not None:
        accepted = cli.client.post(Accepted, f"/v1/sessions/{quote(dismiss)}/dismiss")
        cli.accepted(accepted, "dismissed; the session is unchanged")
    else:
        found = cli.show(cli.client.get("/v1/inbox"), Inbox, render_inbox)
        if found.entries and not cli.json:
            more = f", {len(found.entries):,} shown" if len(found.entries) < found.total else ""
            cli.note(f"\n{found.total:,} {'entry' if found.total == 1 else 'entries'}{more}")


@verb(cls=TextCommand)
@click.argument("id", type=WAIT)
@click.argument("text", type=TEXT, required=False)
@click.option("--allow", "choice", flag_value="allow", help="Allow this call, once.")
@click.option("--call", "choice", flag_value="call", help="Allow exactly this call for the rest of this session.")
@click.option("--session", "choice", flag_value="session", help="Allow what matches the shown rule, in this session.")
@click.option("--always", "choice", flag_value="always", help="The same permanently: adds the rule to the profile.")
@click.option("--deny", "choice", flag_value="deny", help="Do not allow it; TEXT is a reason for the agent.")
def answer(cli: Cli, id: str, text: str | None, choice: str | None) -> None:
    """Answer a question with TEXT (or the number of a choice), or an approval with an option.

    `holdfast inbox` lists the IDs; that of the session works too. `holdfast inbox ID` shows every argument of the
    call, and the rule that --session and --always allow. An expired log-in and a used-up quota take `try again`; a
    context that is too long and has no summary takes `try again` or `digest`.

    Only the first answer counts; a second one is refused and names who answered first.
    """
    if text is None and choice is None:
        raise CliError(
            "The answer is missing.",
            hint=f"Add a TEXT, or {GRANTS}. `holdfast inbox ID` shows what is asked.",
            code=USAGE,
        )
    cli.start_gateway()
    wait = cli.client.wait(id).wait  # by the ID of its session too
    rule = wait.pattern if choice in ("session", "always") else ""
    accepted = cli.client.answer(wait.id, choice or text or "", note=text or "" if choice else "")
    if cli.json:
        warning = {"warning": accepted.warning} if accepted.warning else {}
        cli.print_json({name: getattr(accepted, name) for name in ("session", "version", "seq")} | warning)
        return
    if rule and not accepted.warning:
        cli.echo(f"allowed {'in this session' if choice == 'session' else 'in its profile'}: {one_line(rule)}")
    said = text.strip() if text is not None and choice is None else ""
    own = f" with the text “{one_line(said)}”, which is none of the choices" if _is_own_text(wait, said) else ""
    cli.echo(f"answered{own}; session {accepted.session} continues")
    if accepted.warning:
        cli.note(f"warning: {clean(accepted.warning)}")


def _is_own_text(wait: WaitView, said: str) -> bool:
    """Return whether an answer to a question with choices names none of them."""
    numbers = [str(number) for number, _ in enumerate(wait.choices, 1)]
    return wait.purpose == "question" and bool(wait.choices) and said not in (*wait.choices, *numbers)
