/** Where else notifications go: other devices, and the destinations of config.toml; and what was given up. */
import type { ReactNode } from "react";
import { Link } from "wouter";
import { call } from "../api/http";
import { knownValue } from "../api/known";
import { queryClient } from "../api/queryClient";
import type { DestinationView } from "../api/types.gen";
import { plural } from "../text";
import { Button } from "../ui/Button";
import { Chip } from "../ui/Chip";
import { AsOf, Show } from "../ui/Known";
import shared from "../ui/shared.module.css";
import type { State } from "../ui/states";
import { Time } from "../ui/Time";
import { toast, toastError } from "../ui/toasts";
import { useDeliveries, useDestinations, usePush } from "./queries";
import settings from "./settings.module.css";

const SHOWN = 10;

/** Send a test and say what became of it. */
export async function sendTest(destination: string, name: string): Promise<void> {
  try {
    const { sent, problem, hint } = await call("POST /v1/notify/test", { body: { destination } });
    if (sent) toast("done", `The test was sent to ${name}`);
    else toast("failed", `The test did not reach ${name}`, [problem, hint].filter(Boolean).join(" "));
  } catch (error) {
    toastError(error);
  }
  void queryClient.invalidateQueries({ queryKey: ["notify"] });
}

function stateOf(one: DestinationView): State {
  if (one.ended) return { look: "stopped", icon: "stopped", word: "Ended" };
  if (one.problem) return { look: "failed", icon: "failed", word: "Problem" };
  if (one.pending > 0) return { look: "queued", icon: "queued", word: `${one.pending} waiting` };
  if (one.sent_at) return { look: "done", icon: "done", word: "Works" };
  return { look: "idle", icon: "idle", word: "Nothing sent yet" };
}

const nameOf = (one: DestinationView): string => one.label || one.name;

export function Destinations(): ReactNode {
  const known = useDestinations();
  const own = knownValue(usePush())?.subscription?.destination;
  return (
    <section className={shared.panel} aria-label="Other destinations">
      <header>
        <h2>Other devices and destinations</h2>
        <AsOf known={known} />
      </header>
      <Show known={known}>
        {({ destinations }) => {
          const others = destinations.filter((one) => one.name !== own);
          return (
            <>
              {others.map((one) => (
                <Destination key={one.name} one={one} />
              ))}
              {others.length === 0 && <p className={shared.muted}>No other device or destination is told.</p>}
              <p className={shared.faint}>
                To add a device, turn notifications on in its own settings. To add a webhook, ntfy, Slack, Discord,
                Telegram or Apprise, write it into <code>config.toml</code>: docs/notifications.md has an example of
                each.
              </p>
            </>
          );
        }}
      </Show>
    </section>
  );
}

function Destination({ one }: { readonly one: DestinationView }): ReactNode {
  const rules = [
    one.only_when_nobody_looks ? "when nobody looks" : "always",
    ...(one.details ? ["with details"] : []),
    ...(one.home_channel ? ["reports of the gateway"] : []),
  ];
  return (
    <div className={settings.entry} data-destination={one.name}>
      <div className={shared.grow}>
        <b>{nameOf(one)}</b>
        {one.label && <span className={shared.faint}> · device</span>}
        <span className={settings.detail}>
          {one.on.join(", ").replaceAll("_", " ")} · {rules.join(", ")}
        </span>
        <span className={settings.detail}>
          {one.sent_at ? (
            <>
              Last sent <Time at={one.sent_at} />
            </>
          ) : (
            "Nothing was sent in 30 days"
          )}
          {(one.given_up ?? 0) > 0 && ` · ${plural(one.given_up ?? 0, "notification")} given up`}
        </span>
        {one.problem && <span className={`${settings.detail} ${settings.problem}`}>{one.problem}</span>}
      </div>
      <Chip state={stateOf(one)} />
      {!one.ended && (
        <Button small onClick={() => void sendTest(one.name, nameOf(one))} aria-label={`Send a test to ${nameOf(one)}`}>
          Test
        </Button>
      )}
    </div>
  );
}

/** Nothing while none was. */
export function GivenUp(): ReactNode {
  const failed = (knownValue(useDeliveries())?.deliveries ?? []).filter((one) => one.state === "failed");
  const destinations = knownValue(useDestinations())?.destinations ?? [];
  if (failed.length === 0) return null;
  return (
    <section className={shared.panel} aria-label="Given up">
      <header>
        <h2>Given up</h2>
        <span className={shared.faint}>{failed.length}</span>
      </header>
      {failed.slice(0, SHOWN).map((one) => (
        <div key={one.id} className={settings.entry}>
          <div className={shared.grow}>
            <Link href={one.link}>{one.title}</Link> {one.summary}
            <span className={settings.detail}>
              <Time at={one.at} /> · to{" "}
              {destinations.find(({ name }) => name === one.destination)?.label || one.destination}
            </span>
            <span className={`${settings.detail} ${settings.problem}`}>{one.reason}</span>
          </div>
        </div>
      ))}
      {failed.length > SHOWN && (
        <p className={shared.muted}>
          {failed.length - SHOWN} more: <code>holdfast notify log</code>
        </p>
      )}
    </section>
  );
}
