/**
 * The conversation's window: only what is near the eye is rendered. It sticks to the end while it is there; else what
 * is being read stays where it is, whatever comes above or below.
 */
import {
  type ReactNode,
  type Ref,
  useCallback,
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { placeOf } from "../log/model";
import type { FlowItem } from "./Entry";

const FIRST = 40;
const MORE = 40;
const MOST = 160;
const NEAR = 600;

export interface FlowHandle {
  toVersion(version: number): void;
  toEnd(): void;
}

interface Span {
  readonly from: number;
  readonly to: number | null;
}

export function Flow({
  items,
  ref,
  onEnd,
  children,
  render,
}: {
  readonly items: readonly FlowItem[];
  readonly ref: Ref<FlowHandle>;
  readonly onEnd: (at: boolean) => void;
  /** What stands after the last item. */
  readonly children: ReactNode;
  readonly render: (item: FlowItem, index: number) => ReactNode;
}): ReactNode {
  const scroller = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const stuck = useRef(true);
  const anchor = useRef<{ key: string; top: number } | null>(null);
  const target = useRef<string | null>(null);
  const [span, setSpan] = useState<Span>({ from: -FIRST, to: null });
  const from = span.to === null && span.from < 0 ? Math.max(0, items.length + span.from) : Math.max(0, span.from);
  const to = Math.min(span.to ?? items.length, items.length);

  const hold = useCallback(() => {
    const box = scroller.current;
    if (!box) return;
    const edge = box.getBoundingClientRect().top;
    for (const child of box.querySelectorAll<HTMLElement>("[data-key]")) {
      const { top, bottom } = child.getBoundingClientRect();
      if (bottom > edge) {
        anchor.current = { key: child.dataset.key ?? "", top: top - edge };
        return;
      }
    }
  }, []);

  const scrolled = useCallback(() => {
    const box = scroller.current;
    if (!box) return;
    const below = box.scrollHeight - box.scrollTop - box.clientHeight;
    const atEnd = below < 48 && to >= items.length;
    if (atEnd !== stuck.current) {
      stuck.current = atEnd;
      onEnd(atEnd);
    }
    if (box.scrollTop < NEAR && from > 0) {
      hold();
      const first = Math.max(0, from - MORE);
      setSpan({ from: first, to: to - first > MOST ? first + MOST : span.to === null ? null : to });
    } else if (below < NEAR && to < items.length) {
      hold();
      const last = Math.min(items.length, to + MORE);
      setSpan({ from: Math.max(0, last - MOST, from), to: last === items.length ? null : last });
    }
    if (atEnd && (span.to !== null || span.from >= 0) && to - from > MOST / 2) setSpan({ from: -FIRST, to: null });
  }, [from, to, items.length, span, hold, onEnd]);

  useLayoutEffect(() => {
    const box = scroller.current;
    if (!box) return;
    if (target.current !== null) {
      const found = box.querySelector<HTMLElement>(`[data-key="${target.current}"]`);
      target.current = null;
      if (found) {
        found.scrollIntoView({ block: "start" });
        found.focus({ preventScroll: true });
        stuck.current = false;
        onEnd(false);
        return;
      }
    }
    if (stuck.current) box.scrollTop = box.scrollHeight;
    else if (anchor.current) {
      const child = box.querySelector<HTMLElement>(`[data-key="${anchor.current.key}"]`);
      if (child)
        box.scrollTop += child.getBoundingClientRect().top - box.getBoundingClientRect().top - anchor.current.top;
    }
    anchor.current = null;
  });

  useEffect(() => {
    const watch = new ResizeObserver(() => {
      const box = scroller.current;
      if (box && stuck.current) box.scrollTop = box.scrollHeight;
    });
    if (inner.current) watch.observe(inner.current);
    if (scroller.current) watch.observe(scroller.current);
    return () => watch.disconnect();
  }, []);

  useImperativeHandle(
    ref,
    () => ({
      toVersion: (version) => {
        const found = placeOf(items, version);
        const index = found < 0 ? Math.max(0, items.length - 1) : found;
        target.current = items[index]?.key ?? null;
        stuck.current = false;
        const last = index + 60;
        setSpan({ from: Math.max(0, index - 20), to: last >= items.length ? null : last });
      },
      toEnd: () => {
        stuck.current = true;
        onEnd(true);
        setSpan({ from: -FIRST, to: null });
      },
    }),
    [items, onEnd],
  );

  return (
    <div
      className="flow"
      role="log"
      aria-label="Messages"
      aria-live="off"
      tabIndex={0}
      ref={scroller}
      onScroll={scrolled}
      id="conversation"
    >
      <div className="flow-in" ref={inner}>
        {items.slice(from, to).map((item, index) => render(item, from + index))}
        {to >= items.length && children}
      </div>
    </div>
  );
}
