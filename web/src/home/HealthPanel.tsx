import type { ReactNode } from "react";
import { knownValue } from "../api/known";
import type { DiskUse, Spend } from "../api/types.gen";
import { useOverview, useStatus } from "../shell/queries";
import { count, dollars, moment, size } from "../text";
import { Chip } from "../ui/Chip";
import { AsOf, Show } from "../ui/Known";
import shared from "../ui/shared.module.css";
import { gatewayState } from "../ui/states";
import styles from "./HealthPanel.module.css";

/** Dollars where the price is known, tokens anyhow. */
export function spendWords({ cost, tokens, unpriced }: Spend): string {
  const used = `${count(tokens)} tokens`;
  if (tokens === 0) return "nothing";
  if (unpriced > 0 && cost === 0) return used;
  return `${dollars(cost)}${unpriced > 0 ? " and more" : ""}, ${used}`;
}

/** A log that is not in this home has its size elsewhere. */
const stored = ({ database, output }: DiskUse): string =>
  database > 0 ? size(database + output) : `${size(output)} of output`;

export function HealthPanel(): ReactNode {
  const known = useStatus();
  const { spend, disk } = knownValue(useOverview()) ?? {};
  return (
    <section className={shared.panel} aria-label="Health">
      <header>
        <h2>Health</h2>
        <AsOf known={known} />
        <span className={shared.grow} />
        {known.state === "known" && known.current && <Chip state={gatewayState(known.value)} />}
      </header>
      <Show known={known}>
        {(status) => (
          <>
            {status.problem && <p>{status.problem}</p>}
            <dl className={styles.health}>
              <div>
                <dt>Gateway</dt>
                <dd>since {moment(status.started_at)}</dd>
              </div>
              <div>
                <dt>Version</dt>
                <dd>{status.version}</dd>
              </div>
              <div>
                <dt>Spent in 24 hours</dt>
                <dd>{spend ? spendWords(spend) : "unknown"}</dd>
              </div>
              <div>
                <dt>Disk</dt>
                <dd>{disk ? `${size(disk.free)} free` : "unknown"}</dd>
              </div>
              <div>
                <dt>Sessions</dt>
                <dd>{status.sessions.toLocaleString("en")} open</dd>
              </div>
              <div>
                <dt>Stored</dt>
                <dd>{disk ? stored(disk) : "unknown"}</dd>
              </div>
            </dl>
          </>
        )}
      </Show>
    </section>
  );
}
