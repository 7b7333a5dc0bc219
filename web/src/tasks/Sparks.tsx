/** What a command took of the machine while somebody looked: each bar is one measurement of the gateway. */
import { type ReactNode, useEffect, useState } from "react";
import type { TaskView } from "../api/types.gen";
import { size } from "../text";
import shared from "../ui/shared.module.css";
import styles from "./Sparks.module.css";

const MOST = 36;

interface Measured {
  readonly at: number;
  readonly cpu: number;
  readonly memory: number;
  /** Bytes written so far. */
  readonly output: number;
}

/** `at` tells one measurement from the next: the same one may come twice. */
export function Sparks({ task, at }: { readonly task: TaskView; readonly at: number }): ReactNode {
  const [seen, setSeen] = useState<readonly Measured[]>([]);
  const { cpu, memory, output_bytes: output } = task;
  useEffect(() => {
    if (cpu === null || memory === null) return;
    setSeen((before) => [...before.slice(1 - MOST), { at, cpu, memory, output }]);
  }, [cpu, memory, output, at]);
  const last = seen.at(-1);
  if (!last) return null;
  const wrote = seen.map((one, index) => Math.max(0, one.output - (seen[index - 1]?.output ?? one.output)));
  return (
    <section>
      <h2>Live</h2>
      <div className={styles.meter} role="group" aria-label="What it takes">
        <Spark
          name="CPU"
          values={seen.map((one) => one.cpu)}
          least={1}
          now={`${last.cpu < 0.995 ? `${Math.round(last.cpu * 100)} %` : `${last.cpu.toFixed(1)} cores`}`}
        />
        <Spark name="Memory" values={seen.map((one) => one.memory)} least={0} now={size(last.memory)} />
        <Spark name="Output" values={wrote} least={1024} now={size(last.output)} />
      </div>
      <p className={shared.faint}>Measured every few seconds while this page is open.</p>
    </section>
  );
}

function Spark({
  name,
  values,
  least,
  now,
}: {
  readonly name: string;
  readonly values: readonly number[];
  readonly least: number;
  readonly now: string;
}): ReactNode {
  const most = Math.max(least, ...values) || 1;
  return (
    <>
      <span>{name}</span>
      <svg className={styles.bars} viewBox={`0 0 ${MOST * 4} 16`} preserveAspectRatio="none" aria-hidden="true">
        {values.map((value, index) => {
          const x = (MOST - values.length + index) * 4;
          const height = Math.max(value > 0 ? 1 : 0.5, (value / most) * 16);
          return <rect key={x} x={x} y={16 - height} width="3" height={height} />;
        })}
      </svg>
      <span className={styles.now}>{now}</span>
    </>
  );
}
