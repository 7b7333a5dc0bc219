/**
 * The focus is never lost: when what has it goes (an answered question, a deleted row, a page that was left), the
 * nearest place around it that is still there gets it.
 */
import { useEffect } from "react";

const PLACES = "[tabindex], section, aside, nav, main, [role=group], [role=list]";

export function useLostFocus(): void {
  useEffect(() => {
    let around: readonly Element[] = [];
    let frame = 0;
    const isLost = (): boolean => document.activeElement === document.body && around[0]?.isConnected === false;
    const note = ({ target }: FocusEvent): void => {
      around = target instanceof Element ? withParents(target) : [];
    };
    const give = (): void => {
      frame = 0;
      if (!isLost()) return;
      // What lies over the page has nothing of the page around it.
      const place = around.find((one) => one.isConnected && one.matches(PLACES)) ?? document.querySelector("main");
      if (!(place instanceof HTMLElement)) return;
      if (!place.hasAttribute("tabindex")) place.tabIndex = -1;
      place.focus({ preventScroll: true });
    };
    // Two frames later: a dialog gives it back to its button, and a page that opens may want it for a field.
    const watch = new MutationObserver(() => {
      if (frame === 0 && isLost()) {
        frame = requestAnimationFrame(() => {
          frame = requestAnimationFrame(give);
        });
      }
    });
    document.addEventListener("focusin", note);
    watch.observe(document.body, { childList: true, subtree: true });
    return () => {
      cancelAnimationFrame(frame);
      watch.disconnect();
      document.removeEventListener("focusin", note);
    };
  }, []);
}

function withParents(element: Element): readonly Element[] {
  const found: Element[] = [];
  for (let one: Element | null = element; one; one = one.parentElement) found.push(one);
  return found;
}
