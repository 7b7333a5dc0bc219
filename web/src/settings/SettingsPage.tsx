import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { Link, useParams } from "wouter";
import { newerBuild, ours } from "../api/build";
import { build, devices, logout, newCode, revoke } from "../api/endpoints";
import { call, signedOut } from "../api/http";
import { knownValue } from "../api/known";
import { canNotify, setNotifications, wantsNotifications } from "../api/notify";
import { queryClient } from "../api/queryClient";
import { isKept } from "../api/storage";
import { useStore } from "../api/store";
import type { DeviceView } from "../api/types.gen";
import { Banners } from "../chat/Banner";
import { useStatus } from "../shell/queries";
import { DrawerButton } from "../shell/TasksDrawer";
import { moment, plural } from "../text";
import { Confirm } from "../ui/Confirm";
import { Loading } from "../ui/Empty";
import { useTitle } from "../ui/hooks";
import { Time } from "../ui/Time";
import { toastError } from "../ui/toasts";
import { Health } from "./Health";
import { useProfiles } from "./queries";
import { Retention } from "./Retention";

const SECTIONS = [
  ["devices", "Devices"],
  ["profiles", "Profiles and models"],
  ["retention", "Retention"],
  ["notifications", "Notifications"],
  ["health", "Health"],
  ["about", "About"],
] as const;

export default function Settings(): ReactNode {
  const { section = "devices" } = useParams();
  const sections = useRef<HTMLElement>(null);
  useTitle("Settings");
  useEffect(() => {
    sections.current?.querySelector("[aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" }); // on a phone they are a row
  }, [section]);
  return (
    <div className="page">
      <div className="bar">
        <h1>Settings</h1>
        <span className="grow" />
        <DrawerButton />
      </div>
      <Banners />
      <div className="settings">
        <nav aria-label="Sections" ref={sections}>
          {SECTIONS.map(([id, name]) => (
            <Link key={id} href={`/settings/${id}`} aria-current={section === id ? "page" : undefined}>
              {name}
            </Link>
          ))}
        </nav>
        <div>
          {section === "devices" && <Devices />}
          {section === "profiles" && <Profiles />}
          {section === "retention" && <Retention />}
          {section === "notifications" && <Notifications />}
          {section === "health" && <Health />}
          {section === "about" && <About />}
        </div>
      </div>
    </div>
  );
}

function Devices(): ReactNode {
  const list = useQuery({ queryKey: ["devices"], queryFn: devices, staleTime: 5_000 });
  const [revoking, setRevoking] = useState<DeviceView | null>(null);
  const [code, setCode] = useState<{ code: string; expires_at: number } | null>(null);
  const sorted = [...(list.data?.devices ?? [])].sort(
    (a, b) => Number(b.current) - Number(a.current) || b.seen_at - a.seen_at,
  );
  const refresh = (): void => void queryClient.invalidateQueries({ queryKey: ["devices"] });
  return (
    <section className="panel" aria-label="Devices">
      <header>
        <h2>Devices</h2>
        <span className="grow" />
        <button type="button" className="btn small" onClick={() => void newCode().then(setCode, toastError)}>
          Add a device
        </button>
      </header>
      {code && (
        <p>
          Open <code>{location.origin}/</code> on the device and type this code, until {moment(code.expires_at)}, once:{" "}
          <code className="select-all">{code.code}</code>
        </p>
      )}
      {list.isLoading && <Loading rows={2} />}
      {list.isError && <p className="muted">{list.error.message}</p>}
      {sorted.map((device) => (
        <div key={device.id} className="entry-row">
          <div className="grow">
            <b>{device.name}</b>
            {device.current && <span className="faint"> · this one</span>}
            <div className="muted">
              {device.connected ? (
                "Looking at it now"
              ) : (
                <>
                  Last seen <Time at={device.seen_at} />
                </>
              )}{" "}
              · signed in <Time at={device.created_at} />
            </div>
          </div>
          {device.current ? (
            <button type="button" className="btn" onClick={() => void logout().then(signedOut, toastError)}>
              Sign out
            </button>
          ) : (
            <button type="button" className="btn danger" onClick={() => setRevoking(device)}>
              Revoke
            </button>
          )}
        </div>
      ))}
      {revoking && (
        <Confirm
          title={`Revoke ${revoking.name}?`}
          verb="Revoke"
          onNo={() => setRevoking(null)}
          onYes={() => {
            void revoke(revoking.id).then(refresh, toastError);
            setRevoking(null);
          }}
        >
          <p>It is signed out at once. Agents and commands keep running.</p>
        </Confirm>
      )}
    </section>
  );
}

function Profiles(): ReactNode {
  const profiles = useProfiles();
  const problem = knownValue(profiles)?.problem;
  const models = useQuery({ queryKey: ["models"], queryFn: () => call("GET /v1/models") });
  return (
    <>
      <section className="panel" aria-label="Profiles">
        <header>
          <h2>Profiles</h2>
        </header>
        {problem && <p className="text-failed-fg">{problem}</p>}
        {profiles.state === "loading" && <Loading rows={2} />}
        {knownValue(profiles)?.profiles.map((profile) => (
          <div key={profile.name} className="entry-row">
            <div className="grow">
              <b>{profile.name}</b>
              {profile.default && <span className="faint"> · default</span>}
              <div className="muted cut">
                {profile.model} · {plural(Object.keys(profile.tools).length, "tool rule")} · from {profile.origin}
              </div>
            </div>
          </div>
        ))}
      </section>
      <section className="panel" aria-label="Models">
        <header>
          <h2>Detected models</h2>
        </header>
        {models.data?.detected.length === 0 && (
          <p className="muted">
            No model was detected. Set a key in the environment of the gateway, or start a local model server;{" "}
            <code>holdfast doctor</code> says what is missing.
          </p>
        )}
        {models.data?.detected.map((found) => (
          <div key={found.provider} className="entry-row">
            <div className="grow">
              <b>{found.provider}</b>
              <div className="muted">{found.how}</div>
              <div className="faint cut">{found.models.slice(0, 12).join(", ")}</div>
            </div>
          </div>
        ))}
      </section>
    </>
  );
}

function Notifications(): ReactNode {
  const [on, setOn] = useState(wantsNotifications);
  return (
    <section className="panel" aria-label="Notifications">
      <header>
        <h2>Notifications on this device</h2>
      </header>
      {canNotify() ? (
        <label className="entry-row">
          <input
            type="checkbox"
            checked={on}
            onChange={(event) => void setNotifications(event.target.checked).then(setOn)}
          />
          <span className="grow">
            Notify me when a task or a turn ends, a question waits, a card needs me or is done, a rule resets a session,
            or commands are stale
          </span>
        </label>
      ) : (
        <p className="muted">This browser cannot show notifications here.</p>
      )}
      {!isKept() && (
        <p className="muted">
          This browser stores nothing: drafts, unsent messages and this choice are lost when the tab is closed.
        </p>
      )}
    </section>
  );
}

function About(): ReactNode {
  const status = knownValue(useStatus());
  const known = useQuery({ queryKey: ["build"], queryFn: build, staleTime: 0 });
  const newer = useStore(newerBuild);
  return (
    <section className="panel" aria-label="About">
      <header>
        <h2>Holdfast</h2>
      </header>
      <dl className="pairs">
        <dt>Version</dt>
        <dd>{status?.version ?? "unknown"}</dd>
        <dt>Dashboard</dt>
        <dd className="mono">
          {known.data?.build || "unknown"}
          {newer && <span className="muted"> · this page is {ours}, of an older build</span>}
        </dd>
        <dt>Process</dt>
        <dd>{status?.pid ?? "unknown"}</dd>
      </dl>
    </section>
  );
}
