/** Long lists: only the rows near the eye are rendered, what is above and below is height. */
import { type RefObject, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";

export interface Shown {
  readonly first: number;
  readonly last: number;
  /** The heights of what is left out. */
  readonly above: number;
  readonly below: number;
}

const STEP = 240;

/** How far down each row begins, and at the end how high all of them are. */
export function tops(kinds: readonly string[], heights: Readonly<Record<string, number>>): Float64Array {
  const sums = new Float64Array(kinds.length + 1);
  kinds.forEach((kind, index) => {
    sums[index + 1] = (sums[index] ?? 0) + (heights[kind] ?? 0);
  });
  return sums;
}

/** The first row that ends below a height. */
export function rowAt(sums: Float64Array, height: number): number {
  let low = 0;
  let high = sums.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sums[middle + 1] ?? Infinity) > height) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The rows near the eye: a screen more on either side. */
function useNear(box: RefObject<HTMLElement | null>, sums: Float64Array): Shown {
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
  const rows = sums.length - 1;
  const first = rowAt(sums, view.top - view.height);
  const last = Math.min(rows, rowAt(sums, view.top + 2 * view.height + STEP) + 1);
  return { first, last, above: sums[first] ?? 0, below: (sums[rows] ?? 0) - (sums[last] ?? 0) };
}

/**
 * Which of the rows to render. Each kind of row is as high as the first one of it
 * that is on the screen (`data-kind`); `guess` is for before that.
 */
export function useRows(
  box: RefObject<HTMLElement | null>,
  kinds: readonly string[],
  guess: Readonly<Record<string, number>>,
): Shown {
  const [heights, setHeights] = useState(guess);
  useLayoutEffect(() => {
    const measured = Object.keys(heights).map((kind) => {
      const height = box.current?.querySelector(`[data-kind="${kind}"]`)?.getBoundingClientRect().height;
      return [kind, height || (heights[kind] ?? 0)] as const;
    });
    if (measured.some(([kind, height]) => Math.abs(height - (heights[kind] ?? 0)) > 0.5))
      setHeights(Object.fromEntries(measured));
  });
  return useNear(
    box,
    useMemo(() => tops(kinds, heights), [kinds, heights]),
  );
}

/** The same for rows of any height: those on the screen are measured by their id (`data-row`), the others are a guess. */
export function useMeasured(
  box: RefObject<HTMLElement | null>,
  ids: readonly string[],
  guess: number,
  gap: number,
): Shown {
  const heights = useRef(new Map<string, number>());
  const [measured, setMeasured] = useState(0);
  useLayoutEffect(() => {
    let changed = false;
    for (const row of box.current?.querySelectorAll<HTMLElement>("[data-row]") ?? []) {
      const id = row.dataset.row ?? "";
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
  return useNear(box, sums);
}
