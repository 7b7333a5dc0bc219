import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef } from "react";
import { Link, useParams } from "wouter";
import { newerBuild, thisBuild } from "../api/build";
import { build } from "../api/endpoints";
import { knownValue } from "../api/known";
import { useStore } from "../api/store";
import { Banners } from "../chat/Banner";
import { DrawerButton } from "../shell/drawer";
import { useStatus } from "../shell/queries";
import { Bar } from "../ui/Bar";
import { Empty } from "../ui/Empty";
import { useTitle } from "../ui/hooks";
import { AsOf } from "../ui/Known";
import shared from "../ui/shared.module.css";
import { Appearance } from "./Appearance";
import { Devices } from "./Devices";
import { Health } from "./Health";
import { Notifications } from "./Notifications";
import { Profiles } from "./Profiles";
import { ResetRules } from "./ResetRules";
import { Retention } from "./Retention";
import styles from "./SettingsPage.module.css";

const SECTIONS = [
  ["devices", "Devices"],
  ["appearance", "Appearance"],
  ["profiles", "Profiles and models"],
  ["reset", "Reset"],
  ["retention", "Retention"],
  ["notifications", "Notifications"],
  ["health", "Health"],
  ["about", "About"],
] as const;

export default function Settings(): ReactNode {
  const { section = "devices" } = useParams();
  const sections = useRef<HTMLElement>(null);
  useTitle("Settings");
  // biome-ignore lint/correctness/useExhaustiveDependencies: another section is current then
  useEffect(() => {
    // On a phone they are a row.
    sections.current?.querySelector("[aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
  }, [section]);
  return (
    <div className={shared.page}>
      <Bar>
        <h1>Settings</h1>
        <span className={shared.grow} />
        <DrawerButton />
      </Bar>
      <Banners />
      <div className={styles.page}>
        <nav className={styles.sectionList} aria-label="Sections" ref={sections}>
          {SECTIONS.map(([id, name]) => (
            <Link key={id} href={`/settings/${id}`} aria-current={section === id ? "page" : undefined}>
              {name}
            </Link>
          ))}
        </nav>
        <div className={styles.content}>
          {!SECTIONS.some(([id]) => id === section) && (
            <Empty title="There is no such section">Choose one of the sections of the settings.</Empty>
          )}
          {section === "devices" && <Devices />}
          {section === "appearance" && <Appearance />}
          {section === "reset" && <ResetRules />}
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

function About(): ReactNode {
  const gateway = useStatus();
  const status = knownValue(gateway);
  const known = useQuery({ queryKey: ["build"], queryFn: build, staleTime: 0 });
  const newer = useStore(newerBuild);
  return (
    <section className={shared.panel} aria-label="About">
      <header>
        <h2>Holdfast</h2>
        <AsOf known={gateway} />
      </header>
      <dl className={shared.pairs}>
        <dt>Version</dt>
        <dd>{status?.version ?? "unknown"}</dd>
        <dt>Dashboard build</dt>
        <dd className={shared.mono}>
          {known.data?.build || "unknown"}
          {newer && <span className={shared.muted}> · this page is {thisBuild}, of an older build</span>}
        </dd>
        <dt>Gateway process</dt>
        <dd>{status?.pid ?? "unknown"}</dd>
      </dl>
    </section>
  );
}
