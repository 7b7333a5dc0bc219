/**
 * Long lists: only the rows near the eye are rendered. `useVirtualRows` is for tables and whatever draws its own rows:
 * it says which to draw, how much room stands above and below, and measures each (`ref={measure}`, `data-index`).
 */
import { useVirtualizer, type VirtualItem, type Virtualizer } from "@tanstack/react-virtual";
import { type ReactNode, type RefObject, useRef } from "react";

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

/** A list in a scroller of its own. */
export function VirtualList<T>({
  items,
  rowKey,
  estimate,
  gap = 0,
  name,
  className = "scroll",
  children,
}: {
  readonly items: readonly T[];
  readonly rowKey: (item: T) => string | number;
  readonly estimate: (item: T) => number;
  readonly gap?: number;
  readonly name: string;
  readonly className?: string;
  readonly children: (item: T, index: number) => ReactNode;
}): ReactNode {
  const scroller = useRef<HTMLDivElement>(null);
  const at = (index: number): T => items[index] as T;
  const { rows, above, below, measure } = useVirtualRows({
    scroller,
    count: items.length,
    rowKey: (index) => rowKey(at(index)),
    estimate: (index) => estimate(at(index)),
    gap,
  });
  return (
    <div className={className} ref={scroller}>
      <ul aria-label={name} style={{ paddingTop: above, paddingBottom: below }}>
        {rows.map((row) => (
          <li
            key={row.key}
            ref={measure}
            data-index={row.index}
            aria-setsize={items.length}
            aria-posinset={row.index + 1}
            style={row.index > 0 ? { marginTop: gap } : undefined}
          >
            {children(at(row.index), row.index)}
          </li>
        ))}
      </ul>
    </div>
  );
}
