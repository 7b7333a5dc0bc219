/**
 * The conversation's window: only what is near the eye is rendered. It sticks to the end while it is there; else what
 * is being read stays where it is, whatever comes above or below.
 */
import {
  type KeyboardEvent,
  type ReactNode,
  type Ref,
  useCallback,
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
  useRef,
} from "react";
import { placeOf } from "../log/model";
import { useVirtualRows } from "../ui/virtualRows";
import type { FlowItem } from "./Entry";
import styles from "./Flow.module.css";

const ESTIMATE = 96;
const NEAR_END = 48;
const isAtEnd = (box: Element): boolean => box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END;
const CONTROLS = 'a[href], button:not(:disabled), input, select, textarea, summary, [tabindex="0"]';

export interface FlowHandle {
  toVersion(version: number): void;
  toEnd(): void;
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
  /** Where the end was when it was last gone to: only who scrolls gets above it. */
  const end = useRef(0);
  const target = useRef<string | null>(null);
  const { rows, above, below, measure, scrollTo } = useVirtualRows({
    scroller,
    count: items.length,
    rowKey: (index) => items[index]?.key ?? index,
    estimate: () => ESTIMATE,
    adjust: () => !stuck.current, // the end stays in view, whatever is measured above it
  });

  const stick = useCallback(
    (on: boolean): void => {
      if (on === stuck.current) return;
      stuck.current = on;
      onEnd(on);
    },
    [onEnd],
  );

  const follow = useCallback(() => {
    const box = scroller.current;
    if (!box || !stuck.current) return;
    if (box.scrollTop < end.current - 1 && !isAtEnd(box)) return stick(false); // it grew while somebody scrolled
    box.scrollTop = box.scrollHeight;
    end.current = box.scrollTop;
  }, [stick]);

  const scrolled = useCallback(() => {
    const box = scroller.current;
    if (!box) return;
    if (isAtEnd(box)) {
      end.current = box.scrollTop;
      stick(true);
    } else follow();
  }, [follow, stick]);

  useLayoutEffect(() => {
    const found = target.current && scroller.current?.querySelector<HTMLElement>(`[data-key="${target.current}"]`);
    if (!found) return follow();
    target.current = null;
    found.scrollIntoView({ block: "start" });
    found.focus({ preventScroll: true });
  });

  useEffect(() => {
    const watch = new ResizeObserver(follow);
    if (inner.current) watch.observe(inner.current);
    if (scroller.current) watch.observe(scroller.current);
    return () => watch.disconnect();
  }, [follow]);

  useImperativeHandle(
    ref,
    () => ({
      toVersion: (version) => {
        const found = placeOf(items, version);
        const index = found < 0 ? Math.max(0, items.length - 1) : found;
        target.current = items[index]?.key ?? null;
        stick(false);
        scrollTo(index, "start");
      },
      toEnd: () => {
        end.current = 0;
        stick(true);
        follow();
      },
    }),
    [items, stick, follow, scrollTo],
  );

  /** Tab goes on with what is in view, not with the rows that are drawn above it. */
  const tab = (event: KeyboardEvent<HTMLDivElement>): void => {
    const box = scroller.current;
    if (event.key !== "Tab" || event.shiftKey || !box || event.target !== box) return;
    const { top } = box.getBoundingClientRect();
    const next = [...box.querySelectorAll<HTMLElement>(CONTROLS)].find((one) => {
      const [rect] = one.getClientRects();
      return rect !== undefined && rect.top >= top;
    });
    if (!next) return;
    event.preventDefault();
    next.focus();
  };

  return (
    <div
      className={styles.flow}
      role="log"
      aria-label="Messages"
      aria-live="off"
      tabIndex={0}
      ref={scroller}
      onScroll={scrolled}
      onKeyDown={tab}
      id="conversation"
    >
      <div className={styles.inner} ref={inner}>
        <div style={{ height: above }} />
        {rows.map(({ index, key }) => {
          const item = items[index];
          return (
            item && (
              <div key={key} ref={measure} data-index={index} className={styles.row}>
                {render(item, index)}
              </div>
            )
          );
        })}
        <div style={{ height: below }} />
        {children}
      </div>
    </div>
  );
}
