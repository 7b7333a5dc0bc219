/** The browsers that are signed in, and how another one comes in. */
import { type ReactNode, useRef, useState } from "react";
import { isLoopback } from "../api/connection";
import { logout, newCode, renameDevice, revoke } from "../api/endpoints";
import { signedOut } from "../api/http";
import { queryClient } from "../api/queryClient";
import type { DeviceView, SignInCode } from "../api/types.gen";
import { clock } from "../text";
import { Button } from "../ui/Button";
import { Confirm } from "../ui/Confirm";
import { Dialog } from "../ui/Dialog";
import { AsOf, Show } from "../ui/Known";
import { Menu } from "../ui/Menu";
import shared from "../ui/shared.module.css";
import { Time } from "../ui/Time";
import { toastError } from "../ui/toasts";
import styles from "./Devices.module.css";
import { QrCode } from "./QrCode";
import { useDevices } from "./queries";
import settings from "./settings.module.css";

const refresh = (): void => void queryClient.invalidateQueries({ queryKey: ["devices"] });

export function Devices(): ReactNode {
  const known = useDevices();
  const [code, setCode] = useState<SignInCode | null>(null);
  return (
    <section className={shared.panel} aria-label="Devices">
      <header>
        <h2>Devices</h2>
        <AsOf known={known} />
        <span className={shared.grow} />
        <Button small onClick={() => void newCode().then(setCode, toastError)}>
          Add a device…
        </Button>
      </header>
      <Show known={known}>
        {({ devices }) =>
          [...devices]
            .sort((a, b) => Number(b.current) - Number(a.current) || b.seen_at - a.seen_at)
            .map((device) => <Device key={device.id} device={device} />)
        }
      </Show>
      {code && <AddDevice code={code} onClose={() => setCode(null)} />}
    </section>
  );
}

/** Addresses that another device can open: never this machine's own loopback. */
export function addressesFor(code: Pick<SignInCode, "urls">, here: Location = location): readonly string[] {
  const own = isLoopback(here.hostname) ? [] : [here.origin];
  return [...new Set([...own, ...(code.urls ?? [])])];
}

function AddDevice({ code, onClose }: { readonly code: SignInCode; readonly onClose: () => void }): ReactNode {
  const [address] = addressesFor(code);
  return (
    <Dialog title="Add a device" onClose={onClose}>
      {address ? (
        <div className={styles.add}>
          <QrCode text={`${address}/#code=${code.code}`} />
          <div>
            <p>
              Scan this with the device, or open <code>{address}</code> there and type this code, until{" "}
              {clock(code.expires_at)}, once:
            </p>
            <p>
              <code className={styles.code}>{code.code}</code>
            </p>
          </div>
        </div>
      ) : (
        <>
          <p>
            <strong>Other devices cannot reach this gateway yet.</strong> It listens on this machine only.
          </p>
          <p>
            Give it an address of its own, for example in your tailnet: set <code>public_urls</code> in{" "}
            <code>[gateway]</code> of config.toml and run <code>holdfast restart</code>. Then come back here.
          </p>
          <p className={shared.muted}>
            For another browser on this machine, run <code>holdfast open</code>, or type this code there until{" "}
            {clock(code.expires_at)}: <code className={styles.code}>{code.code}</code>
          </p>
        </>
      )}
    </Dialog>
  );
}

function Device({ device }: { readonly device: DeviceView }): ReactNode {
  const [asking, setAsking] = useState<"" | "rename" | "revoke">("");
  const close = (): void => setAsking("");
  return (
    <div className={settings.entry}>
      <div className={shared.grow}>
        <b>{device.name}</b>
        {device.current && <span className={shared.faint}> · this one</span>}
        <div className={shared.muted}>
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
      <Menu
        name={`Actions for ${device.name}`}
        entries={[
          { word: "Rename…", icon: "edit", act: () => setAsking("rename") },
          device.current
            ? { word: "Sign out", danger: true, act: () => void logout().then(signedOut, toastError) }
            : { word: "Revoke…", danger: true, act: () => setAsking("revoke") },
        ]}
      />
      {asking === "rename" && <Rename device={device} onClose={close} />}
      {asking === "revoke" && (
        <Confirm
          title={`Revoke ${device.name}?`}
          verb="Revoke"
          onNo={close}
          onYes={() => {
            void revoke(device.id).then(refresh, toastError);
            close();
          }}
        >
          <p>It is signed out at once. Agents and commands keep running.</p>
        </Confirm>
      )}
    </div>
  );
}

function Rename({ device, onClose }: { readonly device: DeviceView; readonly onClose: () => void }): ReactNode {
  const [name, setName] = useState(device.name);
  const field = useRef<HTMLInputElement>(null);
  const save = (): void => {
    onClose();
    void renameDevice(device.id, name.trim()).then(refresh, toastError);
  };
  return (
    <Dialog
      title={`Rename ${device.name}`}
      onClose={onClose}
      initialFocus={field}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form="rename-device" primary disabled={!name.trim()}>
            Rename
          </Button>
        </>
      }
    >
      <form
        id="rename-device"
        onSubmit={(event) => {
          event.preventDefault();
          save();
        }}
      >
        <label className={settings.field}>
          Name
          <input
            ref={field}
            className={shared.input}
            value={name}
            maxLength={80}
            onChange={(event) => setName(event.target.value)}
          />
        </label>
      </form>
    </Dialog>
  );
}
