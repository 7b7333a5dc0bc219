/** The last 24 hours by the half hour, as the gateway counts them. */
import type { ReactNode } from "react";
import type { WorkSlot } from "../api/types.gen";
import { useOverview } from "../shell/queries";
import { clock, plural } from "../text";
import { AsOf, Show } from "../ui/Known";
import { lookClass } from "../ui/looks";
import shared from "../ui/shared.module.css";
import styles from "./LastDay.module.css";

const WIDTH = 480;
const HEIGHT = 72;

export function LastDay(): ReactNode {
  const overview = useOverview();
  return (
    <section className={shared.panel} aria-label="Last 24 hours">
      <header>
        <h2>Last 24 hours</h2>
        <AsOf known={overview} />
      </header>
      <Show known={overview}>{({ slots }) => <Chart slots={slots} />}</Show>
    </section>
  );
}

function Chart({ slots }: { readonly slots: readonly WorkSlot[] }): ReactNode {
  const most = Math.max(4, ...slots.map((slot) => slot.turns + slot.tasks + slot.waits));
  const step = WIDTH / slots.length;
  const sum = (of: "turns" | "tasks" | "failed" | "waits"): number => slots.reduce((all, slot) => all + slot[of], 0);
  const words = [
    `${plural(sum("turns"), "turn")} and ${plural(sum("tasks"), "task")} ended`,
    `${sum("failed")} of them failed`,
    `${plural(sum("waits"), "question")} asked`,
  ].join(", ");
  return (
    <div className={styles.chart}>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={words}>
        {slots.map((slot, index) => (
          <Bar key={slot.at} slot={slot} x={index * step + 1} width={step - 2} scale={(HEIGHT - 2) / most} />
        ))}
        <line x1="0" x2={WIDTH} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} className={styles.ground} />
      </svg>
      <div className={styles.hours} aria-hidden="true">
        {[0, 12, 24, 36].map((index) => (
          <span key={index}>{clock(slots[index]?.at ?? 0)}</span>
        ))}
        <span>now</span>
      </div>
      <p className={styles.legend}>
        <span className={lookClass("working")}>
          <i />
          {plural(sum("turns"), "turn")} and {plural(sum("tasks"), "task")} ended
        </span>
        <span className={lookClass("failed")}>
          <i />
          {sum("failed")} failed
        </span>
        <span className={lookClass("waiting")}>
          <i />
          {plural(sum("waits"), "question")}
        </span>
      </p>
    </div>
  );
}

/** What went well below, what failed and what waits on top. */
function Bar({
  slot,
  x,
  width,
  scale,
}: {
  readonly slot: WorkSlot;
  readonly x: number;
  readonly width: number;
  readonly scale: number;
}): ReactNode {
  const ended = slot.turns + slot.tasks;
  if (ended + slot.waits === 0) return null;
  const parts: readonly (readonly [string, number])[] = [
    ["working", ended - slot.failed],
    ["failed", slot.failed],
    ["waiting", slot.waits],
  ];
  const counts = [plural(slot.turns, "turn"), plural(slot.tasks, "task"), `${slot.failed} failed`];
  const what = [...counts, plural(slot.waits, "question")].join(", ");
  let y = HEIGHT - 1;
  return (
    <g>
      <title>{`${clock(slot.at)}: ${what}`}</title>
      {parts.map(([look, value]) => {
        const height = value * scale;
        y -= height;
        return value > 0 && <rect key={look} className={lookClass(look)} x={x} y={y} width={width} height={height} />;
      })}
    </g>
  );
}
