/** Notifications: on this device, on others, and to the destinations of config.toml. */
import { type ReactNode, useState } from "react";
import { canNotify, setNotifications, takesPushes, wantsNotifications } from "../api/notify";
import { type PushRules, subscribe, unsubscribe } from "../api/push";
import { queryClient } from "../api/queryClient";
import { isKept } from "../api/storage";
import type { PushView } from "../api/types.gen";
import { Button } from "../ui/Button";
import { Show } from "../ui/Known";
import shared from "../ui/shared.module.css";
import { toastError } from "../ui/toasts";
import { Destinations, GivenUp, sendTest } from "./Destinations";
import { usePush } from "./queries";
import { Saved, useSaved } from "./Saved";
import settings from "./settings.module.css";

/** Why this browser can show none here; or that it can. */
type Ability = "able" | "insecure" | "home-screen" | "unsupported" | "blocked";

function ability(): Ability {
  if (!isSecureContext) return "insecure";
  const apple = /iPhone|iPad|iPod/.test(navigator.userAgent);
  if (!canNotify()) return apple || isTablet() ? "home-screen" : "unsupported";
  return Notification.permission === "denied" ? "blocked" : "able";
}

/** An iPad says that it is a Mac. */
const isTablet = (): boolean => /Macintosh/.test(navigator.userAgent) && navigator.maxTouchPoints > 1;

const WHAT_TO_DO: Readonly<Record<Exclude<Ability, "able">, readonly [string, string]>> = {
  insecure: [
    "Browsers show notifications of secure pages only.",
    "Open Holdfast on this machine itself, or under an address that begins with https:// (public_urls in config.toml).",
  ],
  "home-screen": [
    "An iPhone or iPad shows notifications of apps on the home screen only.",
    "In Safari tap Share, then Add to Home Screen. Open Holdfast from there, and turn notifications on here.",
  ],
  unsupported: [
    "This browser cannot show notifications.",
    "Use a newer browser, or a private window that is not private; or set up a webhook, for example for ntfy.",
  ],
  blocked: [
    "This browser blocks notifications of this page.",
    "Allow them in the settings of the page, beside its address, then reload it.",
  ],
};

export function Notifications(): ReactNode {
  return (
    <div className={settings.sections} role="group" aria-label="Notifications">
      <ThisDevice />
      <Destinations />
      <GivenUp />
    </div>
  );
}

type Mode = "off" | "page" | "push";
const mode = (): Mode => (takesPushes() ? "push" : wantsNotifications() ? "page" : "off");

function ThisDevice(): ReactNode {
  const [able, setAble] = useState(ability);
  const [on, setOn] = useState(mode);
  const [problem, setProblem] = useState("");
  const [saved, save] = useSaved();
  const turnOn = async (): Promise<void> => {
    if (!(await setNotifications(true))) return setAble(ability());
    try {
      await subscribeWith({});
      setProblem("");
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
    setOn(mode());
  };
  const turnOff = async (): Promise<void> => {
    await setNotifications(false);
    if (takesPushes()) queryClient.setQueryData(["push"], await unsubscribe());
    setOn(mode());
    void queryClient.invalidateQueries({ queryKey: ["notify"] });
  };
  return (
    <section className={shared.panel} aria-label="This device">
      <header>
        <h2>This device</h2>
        <span className={shared.grow} />
        <Saved at={saved} />
      </header>
      {able === "able" ? (
        <label className={settings.entry}>
          <input
            type="checkbox"
            checked={on !== "off"}
            onChange={(event) => void (event.target.checked ? turnOn() : turnOff()).catch(toastError)}
          />
          <span className={shared.grow}>
            Notify me on this device
            <span className={settings.detail}>
              When an agent needs me, or something is done or failed, and nobody looks at it
            </span>
          </span>
        </label>
      ) : (
        <div className={settings.entry} data-ability={able}>
          <p>
            <strong>{WHAT_TO_DO[able][0]}</strong> <span className={shared.muted}>{WHAT_TO_DO[able][1]}</span>
          </p>
        </div>
      )}
      {able === "able" && on === "page" && <OnlyWithAPage problem={problem} onAgain={() => void turnOn()} />}
      {able === "able" && on === "push" && <WithPush onAgain={() => void turnOn()} save={save} />}
      {!isKept() && (
        <p className={shared.muted}>
          This browser stores nothing: drafts, unsent messages and this choice are lost when the tab is closed.
        </p>
      )}
    </section>
  );
}

/** Tell the gateway, and show what holds then. */
async function subscribeWith(rules: PushRules): Promise<void> {
  queryClient.setQueryData(["push"], await subscribe(rules));
  void queryClient.invalidateQueries({ queryKey: ["notify"] });
}

function OnlyWithAPage({ problem, onAgain }: { readonly problem: string; readonly onAgain: () => void }): ReactNode {
  return (
    <div className={settings.entry}>
      <p className={shared.grow}>
        <strong>Only while a page of Holdfast is open.</strong>{" "}
        <span className={shared.muted}>
          To be told without one, the browser must reach its push service
          {problem ? `, and it says: ${problem}` : "."}
        </span>
      </p>
      <Button small onClick={onAgain}>
        Try again
      </Button>
    </div>
  );
}

const KINDS: readonly (readonly [NonNullable<PushRules["on"]>[number], string])[] = [
  ["question", "An agent asks something"],
  ["approval", "A tool call waits for an approval"],
  ["blocked", "A card is blocked or waits for a review"],
  ["done", "A turn, a task or a card is done"],
  ["failed", "One of them failed"],
  ["stalled", "The worker of a card did nothing for too long"],
  ["reset", "A rule reset a session, or postponed it"],
  ["stale", "Commands are running that are no longer needed"],
  ["upgrade", "Holdfast was upgraded"],
  ["disk_full", "The disk takes no writes"],
];

function WithPush({
  onAgain,
  save,
}: {
  readonly onAgain: () => void;
  readonly save: (saving: Promise<void>) => Promise<void>;
}): ReactNode {
  const known = usePush();
  const change = (rules: PushRules): void => void save(subscribeWith(rules)).catch(toastError);
  return (
    <Show known={known}>
      {({ subscription }) =>
        subscription && !subscription.ended ? (
          <Rules subscription={subscription} onChange={change} />
        ) : (
          <div className={settings.entry}>
            <p className={`${shared.grow} ${settings.problem}`}>
              {subscription?.ended || "The gateway has no subscription of this device."} Nothing is told here.
            </p>
            <Button small onClick={onAgain}>
              Turn on again
            </Button>
          </div>
        )
      }
    </Show>
  );
}

function Rules({
  subscription,
  onChange,
}: {
  readonly subscription: PushView;
  readonly onChange: (rules: PushRules) => void;
}): ReactNode {
  const { on, only_when_nobody_looks, details, destination, service } = subscription;
  const chosen = KINDS.map(([kind]) => kind).filter((kind) => on.includes(kind));
  return (
    <>
      <div className={settings.entry}>
        <p className={`${shared.grow} ${shared.muted}`}>
          Also while no page is open, encrypted through {service}. On a phone, add Holdfast to the home screen: its icon
          then shows how many wait.
        </p>
        <Button small onClick={() => void sendTest(destination, "this device")}>
          Send a test
        </Button>
      </div>
      <label className={settings.entry}>
        <input
          type="checkbox"
          checked={only_when_nobody_looks}
          onChange={(event) => onChange({ only_when_nobody_looks: event.target.checked })}
        />
        <span>Only when nobody has looked at it for 30 seconds</span>
      </label>
      <label className={settings.entry}>
        <input type="checkbox" checked={details} onChange={(event) => onChange({ details: event.target.checked })} />
        <span>
          Say more than the title
          <span className={settings.detail}>
            The question, the reason or the beginning of the answer stands on the lock screen. A short command can then
            be allowed there, too.
          </span>
        </span>
      </label>
      <fieldset className={settings.choices}>
        <legend>Tell me when</legend>
        {KINDS.map(([kind, word]) => (
          <label key={kind} className={settings.entry}>
            <input
              type="checkbox"
              checked={on.includes(kind)}
              onChange={(event) =>
                onChange({ on: event.target.checked ? [...chosen, kind] : chosen.filter((one) => one !== kind) })
              }
            />
            <span>{word}</span>
          </label>
        ))}
      </fieldset>
    </>
  );
}
