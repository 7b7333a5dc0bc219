"""The docs are complete: every event, command, setting, verb and route."""

from __future__ import annotations

import re
from dataclasses import asdict, fields
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from holdfast.cli.root import root
from holdfast.domain.commands import AnyCommand
from holdfast.domain.events import AnyEvent
from holdfast.domain.events.chapter import ResetPolicy
from holdfast.domain.reset import ResetRules
from holdfast.gateway.openapi import describe
from holdfast.gateway.server import PARTS
from holdfast.models.demo import HELP
from holdfast.notify_settings import TelegramSettings
from holdfast.profiles import Profiles
from holdfast.read_settings import load_settings
from holdfast.settings import (
    BoardSettings,
    ClusterSettings,
    CompactionSettings,
    GatewaySettings,
    McpSettings,
    NodeSettings,
    ProfileSettings,
    ProviderSettings,
    ResetSettings,
    ResumeSettings,
    RetentionSettings,
    Settings,
    StoreSettings,
)

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


@pytest.mark.parametrize("path", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda path: str(path.name))
def test_no_page_has_the_marks_of_an_unfinished_merge(path: Path) -> None:
    assert re.findall(r"^(?:<{7}|={7}|>{7})(?: .*)?$", path.read_text("utf-8"), re.MULTILINE) == []


@pytest.mark.parametrize("kind", [*get_args(AnyEvent), *get_args(AnyCommand)], ids=lambda kind: str(kind.__name__))
def test_every_event_and_command_is_documented_with_its_fields(kind: type[msgspec.Struct]) -> None:
    rows = [line for line in page("docs/events.md").splitlines() if line.startswith(f"| `{kind.__name__}` |")]
    assert len(rows) == 1
    listed = [name.strip().rstrip("?") for name in rows[0].split("|")[2].split(",") if name.strip()]
    assert listed == [field.name for field in msgspec.structs.fields(kind)]


@pytest.mark.parametrize(
    "table",
    [
        Settings,
        GatewaySettings,
        ResumeSettings,
        RetentionSettings,
        ResetSettings,
        CompactionSettings,
        BoardSettings,
        ProviderSettings,
        McpSettings,
        TelegramSettings,
        ProfileSettings,
        StoreSettings,
        ClusterSettings,
        NodeSettings,
    ],
)
def test_every_setting_is_documented(table: type) -> None:
    nested = {"gateway", "store", "node", "cluster", "resume", "retention", "providers", "mcp", "profiles", "tools"}
    nested |= {"session_reset", "compaction", "board", "agents", "telegram"}
    names = [field.name for field in fields(table) if field.name not in nested]
    missing = [name for name in names if not re.search(rf"^{name} = ", page("docs/config.md"), re.MULTILINE)]
    assert not missing


def test_the_documented_settings_are_valid_and_the_defaults(tmp_path: Path) -> None:
    example = re.search(r"```toml\n(.*?)```", page("docs/config.md"), re.DOTALL)
    assert example is not None
    path = tmp_path / "config.toml"
    path.write_text(example.group(1).replace('url = ""\n', ""))
    shown, default = load_settings(path), load_settings(tmp_path / "none")
    rules = {key: value for key, value in asdict(shown.session_reset).items() if value is not None}
    profiles = Profiles(path)
    assert len(rules) == len(fields(ResetSettings))
    assert profiles.reset_rules("demo", ResetPolicy()) == ResetRules()
    assert shown.compaction == default.compaction
    assert shown.resume == default.resume
    assert shown.board == default.board
    assert shown.profiles["coder"].max_steps == ProfileSettings().max_steps
    assert shown.gateway.log_bytes == default.gateway.log_bytes


def test_every_route_is_documented() -> None:
    text = page("docs/api.md")
    served = {route.path_format for part in PARTS for route in part.undocumented if route.path.startswith("/v1")}
    paths = {*describe(PARTS)["paths"], *served}
    assert len(paths) > 70
    missing = []
    for path in paths:
        last = path.rsplit("/", 1)[-1]
        if path not in text and f"`/{last}`" not in text:
            missing.append(path)
    assert not missing


def test_every_verb_is_documented() -> None:
    text = page("docs/cli.md")
    context = root.make_context("holdfast", [], resilient_parsing=True)
    missing = [verb for verb in root.list_commands(context) if f"holdfast {verb}" not in text]
    assert not missing


def test_every_demo_verb_is_documented() -> None:
    verbs = re.findall(r"^ {4}(\w+)", HELP, re.MULTILINE)
    assert len(verbs) >= 7
    assert not [verb for verb in verbs if f"`{verb}`" not in page("docs/demo.md")]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.name))
def test_links_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", path.read_text("utf-8"))
    missing = [target for target in targets if "://" not in target and not (path.parent / target).exists()]
    assert not missing


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.name))
def test_anchors_of_links_exist(path: Path) -> None:
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", path.read_text("utf-8"))
    missing = [
        f"{target}#{anchor}"
        for target, anchor in links
        if anchor not in anchors(path.parent / target if target else path)
    ]
    assert not missing


def anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub makes of the headings of a page."""
    text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
