"""What must be true of every page: nothing overlaps, no text is cut to nothing, the keyboard reaches it, axe agrees.

    at_widths(user, "/tasks")            the geometry at 390, 1024 and 1440 px, with and without the tasks drawer
    check_layout(page)                   the geometry as it stands now; a list of faults
    check_keyboard(page)                 a walk with Tab; a list of faults
    check_axe(page)                      a list of axe's violations

Each returns what is wrong as sentences, so that one test of a page can gather all of them: `assert faults == []`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.web.user import User

WIDTHS = {390: 844, 1024: 768, 1440: 900}
"""And the heights of such screens."""
AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
STOPS, AT_ONCE = 400, 10
"""More than any page has, and how many are gone to before somebody asks whether all is seen."""

LAYOUT = """
() => {
  const INTERACTIVE = 'a[href], button, input, select, textarea, summary, [role=button], [role=tab], [role=menuitem],'
    + ' [role=checkbox], [role=option], [tabindex="0"]';
  const OWN_LAYER = '[role=dialog], [role=menu], [role=status], [data-layer], dialog[open]';
  const seen = (element) => {          // what of its box is on the screen, after all that clips it
    const style = getComputedStyle(element);
    if (style.visibility !== 'visible' || style.opacity === '0' || style.pointerEvents === 'none') return null;
    const box = element.getBoundingClientRect();
    let [left, top, right, bottom] = [box.left, box.top, box.right, box.bottom];
    for (let up = element.parentElement; up; up = up.parentElement) {
      const outer = getComputedStyle(up);
      if (outer.overflow === 'visible' && outer.clipPath === 'none') continue;
      const limit = up.getBoundingClientRect();
      left = Math.max(left, limit.left); top = Math.max(top, limit.top);
      right = Math.min(right, limit.right); bottom = Math.min(bottom, limit.bottom);
    }
    left = Math.max(left, 0); top = Math.max(top, 0);
    right = Math.min(right, innerWidth); bottom = Math.min(bottom, innerHeight);
    return right - left > 2 && bottom - top > 2 ? { left, top, right, bottom } : null;
  };
  const layerOf = (element) => {
    const side = element.closest('aside');       // a drawer that lies over the page
    return side && getComputedStyle(side).position !== 'static' ? side : element.closest(OWN_LAYER);
  };
  const name = (element) => (element.getAttribute('aria-label') || element.textContent || element.tagName)
    .trim().replace(/\\s+/g, ' ').slice(0, 40) + ' <' + element.tagName.toLowerCase()
    + (element.getAttribute('class') ? '.' + element.getAttribute('class').split(' ')[0] : '') + '>';
  const faults = [];
  const modal = document.querySelector('[role=dialog][data-open], dialog[open]');
  const shown = [...(modal ?? document).querySelectorAll(INTERACTIVE)]
    .filter((element) => element.tabIndex >= 0 || element.matches('[role=option], [role=menuitem]'))
    .map((element) => ({ element, box: seen(element), layer: layerOf(element) }))
    .filter(({ box }) => box);
  for (let i = 0; i < shown.length; i++) for (let j = i + 1; j < shown.length; j++) {
    const [a, b] = [shown[i], shown[j]];
    if (a.layer !== b.layer || a.element.contains(b.element) || b.element.contains(a.element)) continue;
    if (a.element.closest('label')?.contains(b.element)) continue;
    // A larger target behind smaller ones, such as a row that is a link, is meant: it says so.
    if (a.element.closest('[data-target]') || b.element.closest('[data-target]')) continue;
    const wide = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
    const high = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
    if (wide > 2 && high > 2) faults.push(`${name(a.element)} overlaps ${name(b.element)}`);
  }
  const texts = document.createTreeWalker(modal ?? document.body, NodeFilter.SHOW_TEXT);
  const done = new Set();
  while (texts.nextNode()) {
    const text = texts.currentNode.textContent.trim();
    const element = texts.currentNode.parentElement;
    if (!text || !element || done.has(element) || element.closest('script, style, svg, select')) continue;
    if (getComputedStyle(element).clipPath === 'inset(50%)') continue;   // only for screen readers
    done.add(element);
    if (!seen(element) || getComputedStyle(element).writingMode !== 'horizontal-tb') continue;
    const range = document.createRange();
    range.selectNodeContents(texts.currentNode);
    const whole = range.getBoundingClientRect();
    const lines = whole.height / parseFloat(getComputedStyle(element).lineHeight);
    const letter = parseFloat(getComputedStyle(element).fontSize) / 2;
    if (text.length > 6 && lines > 3 && whole.width < 5 * letter)
      faults.push(`${name(element)} is ${Math.round(whole.width)} px wide and ${Math.round(lines)} lines high`);
    for (let box = element; box && box !== document.body; box = box.parentElement) {   // who cuts it, if anybody
      const style = getComputedStyle(box);
      if (!['hidden', 'clip'].includes(style.overflowX)) { if (style.overflowX !== 'visible') break; continue; }
      const limit = box.getBoundingClientRect();
      if (whole.right <= limit.right + 1 && whole.left >= limit.left - 1) break;
      const least = Number(box.dataset.least ?? 56);
      const left = Math.min(whole.right, limit.right) - Math.max(whole.left, limit.left);
      if (style.textOverflow !== 'ellipsis' && box.scrollWidth > box.clientWidth + 1)
        faults.push(`${name(element)} is cut without a sign`);
      else if (left < Math.min(least, whole.width))
        faults.push(`${name(element)} is cut to ${Math.round(left)} px, at least ${least} are needed`);
      break;
    }
  }
  if (document.documentElement.scrollWidth > innerWidth + 1)
    faults.push(`the page is ${document.documentElement.scrollWidth} px wide on a screen of ${innerWidth}`);
  return [...new Set(faults)];
}
"""

WALK = """
() => {
  const look = () => {
    const at = document.activeElement;
    if (!at || at === document.body) return null;
    at.dataset.walked ??= '';
    const box = at.getBoundingClientRect();
    let style = getComputedStyle(at);
    let visible = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
    for (let up = at.parentElement, n = 0; up && !visible && n < 3; up = up.parentElement, n++) {
      // a field draws the focus of its input
      style = getComputedStyle(up);
      visible = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 && up.matches(':focus-within');
    }
    const shown = box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0
      && box.left < innerWidth;
    const words = at.getAttribute('aria-label') || at.textContent || at.getAttribute('placeholder') || '';
    const name = words.trim().slice(0, 40) + ' <' + at.tagName.toLowerCase() + '>';
    if (!shown) faults.push(name + ' has the focus and is not in view');
    else if (!visible) faults.push(name + ' has the focus and does not show it');
    return at;
  };
  const isAbove = (one) => {   // what is scrolled out of a conversation is reached with Shift+Tab
    const log = one.parentElement.closest('[role=log]');
    return log !== null && one.getBoundingClientRect().top < log.getBoundingClientRect().top;
  };
  const missed = () => {
    for (const one of document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]'))
      if (one.dataset.walked === undefined && one.tabIndex >= 0 && !one.disabled && one.getClientRects().length > 0
        && getComputedStyle(one).visibility === 'visible' && !one.closest('[inert], [aria-hidden=true]')
        && !(one.type === 'radio' && !one.checked) && !isAbove(one))
        faults.push((one.getAttribute('aria-label') || one.textContent || one.name || '').trim().slice(0, 40)
          + ' <' + one.tagName.toLowerCase() + '> cannot be reached with Tab');
  };
  document.activeElement?.blur();
  for (const one of document.querySelectorAll('[data-walked]')) delete one.dataset.walked;
  const faults = [];
  let first = null, ends = 0;
  window.walkFaults = null;
  const step = () => {
    const at = look();
    if (at === null) ends++;  // past the last one: the browser's own controls; the walk may have begun anywhere
    if (at === null ? ends < 2 : at !== first) {
      first ??= at;
      return;
    }
    document.removeEventListener('keyup', step, true);
    missed();
    window.walkFaults = [...new Set(faults)];
  };
  document.addEventListener('keyup', step, true);
}
"""
"""Look at what has the focus after each key until that comes round; then `walkFaults` has all that was wrong."""


def loaded(page: Page) -> None:
    """Wait until nothing of the page is still to come, and it is drawn."""
    expect(page.locator("h1:visible, h2:visible").first).to_be_visible()
    expect(page.locator("[data-loading]")).to_have_count(0)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def check_layout(page: Page) -> list[str]:
    """No interactive element over another, no text cut below its minimum (`data-least`, 56 px), no page too wide."""
    found: list[str] = page.evaluate(LAYOUT)
    return found


def check_keyboard(page: Page) -> list[str]:
    """Tab reaches every control that can be seen, in view and with a visible focus, and comes round."""
    page.evaluate(WALK)
    for stop in range(1, STOPS + 1):
        page.keyboard.press("Tab")
        if stop % AT_ONCE == 0 and (faults := page.evaluate("window.walkFaults")) is not None:
            return list(faults)
    return [f"Tab does not come round in {STOPS} stops"]


def check_axe(page: Page) -> list[str]:
    """What axe complains of, also about the colours of the dark theme."""
    if page.evaluate("typeof axe === 'undefined'"):
        page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run().then((found) => found.violations)")
    page.emulate_media(color_scheme="dark")
    found += page.evaluate("axe.run({ runOnly: ['color-contrast'] }).then((found) => found.violations)")
    page.emulate_media(color_scheme="light")
    return [f"{one['impact']} {one['id']} {[node['html'][:160] for node in one['nodes'][:2]]}" for one in found]


def set_drawer(page: Page, *, is_open: bool) -> None:
    """Open or close the drawer of background tasks."""
    button = page.get_by_role("button", name="Background tasks").first
    drawer = page.get_by_role("complementary", name="Background tasks")
    if drawer.is_visible() != is_open:
        if is_open:
            button.click()
            drawer.wait_for()
        else:
            drawer.get_by_role("button", name="Close the panel").click()
            drawer.wait_for(state="detached")


def at_widths(user: User, path: str, ready: str = "main h1") -> Iterator[tuple[str, Page]]:
    """The page at each width without and with the drawer; `ready` is a selector of what must be there first."""
    user.open(path)
    for width, height in WIDTHS.items():
        user.page.set_viewport_size({"width": width, "height": height})
        user.page.locator(ready).first.wait_for(state="attached")
        loaded(user.page)
        for is_open in (False, True):
            set_drawer(user.page, is_open=is_open)
            yield f"{path} at {width}{' with the drawer' if is_open else ''}", user.page
        set_drawer(user.page, is_open=False)


def layout_faults(user: User, path: str, ready: str = "main h1") -> list[str]:
    """Every fault of the layout of a page at every width."""
    return [f"{where}: {fault}" for where, page in at_widths(user, path, ready) for fault in check_layout(page)]
