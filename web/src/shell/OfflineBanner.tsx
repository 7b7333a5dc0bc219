/** What it means that the gateway is not heard: said only as far as it is known. */
import type { ReactNode } from "react";
import { toGatewayTime } from "../api/clock";
import { type OfflineCause, offlineCause, retryNow } from "../api/connection";
import { outbox } from "../api/outbox";
import { useStore } from "../api/store";
import { clock, plural } from "../text";
import { Banner } from "../ui/Banner";
import { Button } from "../ui/Button";
import { useNow } from "../ui/hooks";

const MEANING: Readonly<Record<OfflineCause, (since: string) => readonly [string, ReactNode]>> = {
  device: (since) => [`This device has been offline since ${since}. The work continues.`, ""],
  stream: (since) => [
    `No news since ${since}. The work continues.`,
    "The gateway answers, but the connection for live updates is cut. ",
  ],
  stopped: (since) => [
    `The gateway has not been running since ${since}.`,
    <>
      Turns are paused and resume when it starts; commands keep running. Start it with <code>holdfast serve</code>.{" "}
    </>,
  ],
  unreachable: (since) => [
    `No connection to the gateway since ${since}.`,
    <>
      If it is running, the work continues. If it was stopped, turns wait and commands keep running: start it with{" "}
      <code>holdfast serve</code> on its machine.{" "}
    </>,
  ],
};

export function OfflineBanner({ since, next }: { readonly since: number; readonly next: number }): ReactNode {
  const cause = useStore(offlineCause);
  const unsent = useStore(outbox).length;
  const left = Math.ceil((toGatewayTime(next) - useNow()) / 1000);
  const [title, meaning] = MEANING[cause](clock(toGatewayTime(since)));
  return (
    <Banner
      kind="offline"
      look="waiting"
      icon="offline"
      title={title}
      actions={
        <Button small onClick={retryNow}>
          Try now
        </Button>
      }
    >
      {meaning}
      {unsent > 0
        ? `${plural(unsent, "message")} ${unsent === 1 ? "waits" : "wait"} here and`
        : "Messages wait here and"}{" "}
      {unsent === 1 ? "is" : "are"} sent once.{" "}
      <span aria-hidden="true">{left > 0 ? `Next try in ${left}\u00a0s.` : "Trying now."}</span>
    </Banner>
  );
}
