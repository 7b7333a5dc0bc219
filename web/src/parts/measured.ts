/** Long lists of rows of any height: those near the eye are rendered and measured, the others are a guess of height. */
import { type RefObject, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { type Shown, rowAt } from "./window";

const STEP = 200;

/** Each row has `data-row` with its id; `gap` is what lies between two. */
export function useMeasured(box: RefObject<HTMLElement | null>, ids: readonly string[], guess: number, gap: number): Shown {
  const heights = useRef(new Map<string, number>());
  const [measured, setMeasured] = useState(0);
  const [view, setView] = useState({ top: 0, height: 900 });
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = (): void => {
      const next = { top: Math.floor(element.scrollTop / STEP) * STEP, height: element.clientHeight };
      setView((before) => (before.top === next.top && before.height === next.height ? before : next));
    };
    look();
    element.addEventListener("scroll", look, { passive: true });
    const watch = new ResizeObserver(look);
    watch.observe(element);
    return () => {
      element.removeEventListener("scroll", look);
      watch.disconnect();
    };
  }, [box]);
  useLayoutEffect(() => {
    let changed = false;
    for (const row of box.current?.querySelectorAll<HTMLElement>("[data-row]") ?? []) {
      const id = row.dataset["row"] ?? "";
      const height = row.offsetHeight;
      if (height > 0 && Math.abs((heights.current.get(id) ?? 0) - height) > 1) {
        heights.current.set(id, height);
        changed = true;
      }
    }
    if (changed) setMeasured((before) => before + 1);
  });
  const sums = useMemo(() => {
    const found = new Float64Array(ids.length + 1);
    ids.forEach((id, index) => {
      found[index + 1] = (found[index] ?? 0) + (heights.current.get(id) ?? guess) + gap;
    });
    return found;
  }, [ids, guess, gap, measured]); // `measured` says that the heights changed
  const first = rowAt(sums, view.top - view.height / 2);
  const last = Math.min(ids.length, rowAt(sums, view.top + 1.5 * view.height + STEP) + 1);
  return { first, last, above: sums[first] ?? 0, below: (sums[ids.length] ?? 0) - (sums[last] ?? 0) };
}
