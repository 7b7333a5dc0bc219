/** Long lists: only the rows near the eye are rendered, what is above and below is height. */
import { type RefObject, useEffect, useLayoutEffect, useMemo, useState } from "react";

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

/**
 * Which of the rows to render, with a screen more on either side. Each kind of row is as high as the first one of it
 * that is on the screen (`data-kind`); `guess` is for before that.
 */
export function useRows(box: RefObject<HTMLElement | null>, kinds: readonly string[], guess: Readonly<Record<string, number>>): Shown {
  const [heights, setHeights] = useState(guess);
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
    const measured = Object.keys(heights).map((kind) => {
      const height = box.current?.querySelector(`[data-kind="${kind}"]`)?.getBoundingClientRect().height;
      return [kind, height || (heights[kind] ?? 0)] as const;
    });
    if (measured.some(([kind, height]) => Math.abs(height - (heights[kind] ?? 0)) > 0.5)) setHeights(Object.fromEntries(measured));
  });
  const sums = useMemo(() => tops(kinds, heights), [kinds, heights]);
  const first = rowAt(sums, view.top - view.height);
  const last = Math.min(kinds.length, rowAt(sums, view.top + 2 * view.height + STEP) + 1);
  return { first, last, above: sums[first] ?? 0, below: (sums[kinds.length] ?? 0) - (sums[last] ?? 0) };
}
