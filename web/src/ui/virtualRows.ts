/**
 * Long lists: only the rows near the eye are rendered. `useVirtualRows` says which to draw, how much room stands above
 * and below, and measures each (`ref={measure}`, `data-index`).
 */
import { useVirtualizer, type VirtualItem, type Virtualizer } from "@tanstack/react-virtual";
import { type RefObject, useEffect, useLayoutEffect, useRef } from "react";

export interface VirtualRows {
  readonly rows: readonly VirtualItem[];
  /** The heights of what is left out. */
  readonly above: number;
  readonly below: number;
  readonly measure: (element: Element | null) => void;
  readonly scrollTo: (index: number, align?: "auto" | "start" | "center" | "end") => void;
  readonly virtualizer: Virtualizer<HTMLElement, Element>;
}

export interface VirtualOptions {
  readonly scroller: RefObject<HTMLElement | null>;
  readonly count: number;
  readonly rowKey: (index: number) => string | number;
  /** How high a row is before it was measured. */
  readonly estimate: (index: number) => number;
  readonly gap?: number;
  readonly overscan?: number;
  /** Room above the first row inside the scroller, such as a table's head. */
  readonly margin?: number;
  /** For logs: rows grow at the end, and the end stays in view while it is there. */
  readonly anchor?: "start" | "end";
  /** Whether the end stays in view while rows are added; by default with `anchor: "end"`. */
  readonly follow?: boolean;
  /** Whether what is in view keeps its place when rows above it turn out higher or lower; by default always. */
  readonly adjust?: () => boolean;
}

export function useVirtualRows(options: VirtualOptions): VirtualRows {
  const margin = options.margin ?? 0;
  const virtualizer = useVirtualizer<HTMLElement, Element>({
    count: options.count,
    getScrollElement: () => options.scroller.current,
    estimateSize: options.estimate,
    getItemKey: options.rowKey,
    overscan: options.overscan ?? 12,
    gap: options.gap ?? 0,
    scrollMargin: margin,
    anchorTo: options.anchor ?? "start",
    followOnAppend: options.follow ?? options.anchor === "end",
    initialRect: { width: 800, height: 900 },
  });
  // What is measured anew above the first visible row, or above the one with the focus, must not move it.
  virtualizer.shouldAdjustScrollPositionOnItemSizeChange = (item, _delta, instance) => {
    if (options.adjust?.() === false) return false;
    const edge = instance.itemSizeCache.has(item.key) ? item.end : item.start;
    return edge <= (instance.scrollOffset ?? 0) || item.index < focusedRow(options.scroller.current);
  };
  useFocusOfLostRow(options.scroller);
  const rows = virtualizer.getVirtualItems();
  const first = rows[0];
  const last = rows.at(-1);
  return {
    rows,
    above: first ? first.start - margin : 0,
    below: last ? virtualizer.getTotalSize() - (last.end - margin) : 0,
    measure: virtualizer.measureElement,
    scrollTo: (index, align = "auto") => virtualizer.scrollToIndex(index, { align }),
    virtualizer,
  };
}

/** The index of the row that has the focus, or -1. */
function focusedRow(scroller: HTMLElement | null): number {
  const focused = scroller?.contains(document.activeElement) ? document.activeElement : null;
  return Number(focused?.closest<HTMLElement>("[data-index]")?.dataset.index ?? -1);
}

/** When the row that has the focus is no longer drawn, the focus goes to the scroller, if that can have it. */
function useFocusOfLostRow(scroller: RefObject<HTMLElement | null>): void {
  const focused = useRef<Element | null>(null);
  useEffect(() => {
    const note = ({ target }: FocusEvent): void => {
      focused.current = target instanceof Element && scroller.current?.contains(target) ? target : null;
    };
    document.addEventListener("focusin", note);
    return () => document.removeEventListener("focusin", note);
  }, [scroller]);
  useLayoutEffect(() => {
    if (focused.current?.isConnected !== false || document.activeElement !== document.body) return;
    focused.current = null;
    scroller.current?.focus({ preventScroll: true });
  });
}
