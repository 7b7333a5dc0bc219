import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { call } from "../api/http";
import type { Subject } from "../shell/overlay";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import { Popover } from "./Popover";
import shared from "./shared.module.css";
import { Time } from "./Time";
import styles from "./Why.module.css";
import { WithCode } from "./WithCode";

const ROUTES = {
  session: "GET /v1/sessions/{id}/why",
  task: "GET /v1/tasks/{id}/why",
  card: "GET /v1/cards/{id}/why",
} as const;

/** The same words as `holdfast why`, and what they rest on. */
function Answer({ of, id }: Subject): ReactNode {
  const why = useQuery({
    queryKey: ["why", of, id],
    staleTime: 0,
    gcTime: 0,
    queryFn: () => call(ROUTES[of], { path: { id } }),
  });
  if (why.isError) return <p>This cannot be asked right now: {why.error.message}</p>;
  if (!why.data) return <p className={shared.muted}>Asking the gateway…</p>;
  const { sentences } = why.data;
  const [first, ...rest] = sentences;
  if (!first) return <p>There is nothing to say about it.</p>;
  return (
    <>
      <p>
        <WithCode text={first.text} />
      </p>
      {rest.length > 0 && (
        <dl className={styles.more}>
          {rest.map((one) => (
            <div key={`${one.stream} ${one.version} ${one.text}`} className={styles.sentence}>
              <dt>
                <Time at={one.at} />
              </dt>
              <dd>
                <WithCode text={one.text} />
              </dd>
            </div>
          ))}
        </dl>
      )}
      <footer className={styles.footer}>
        <span className={`${shared.faint} ${shared.grow}`}>
          {first.stream.split("/")[0]} event {first.version}
        </span>
        <Button
          quiet
          small
          onClick={() => void navigator.clipboard?.writeText(sentences.map((one) => one.text).join("\n"))}
        >
          Copy as text
        </Button>
      </footer>
    </>
  );
}

export function Why({ of, id, word = "Why?" }: Subject & { readonly word?: string }): ReactNode {
  return (
    <Popover
      title="Why"
      trigger={
        <button type="button" className={shared.linkButton} data-why={`${of}/${id}`}>
          {word}
        </button>
      }
    >
      <Answer of={of} id={id} />
    </Popover>
  );
}

/** `y`: of whatever has the focus. */
export function WhyDialog({ of, id, onClose }: Subject & { readonly onClose: () => void }): ReactNode {
  return (
    <Dialog title="Why" onClose={onClose}>
      <Answer of={of} id={id} />
    </Dialog>
  );
}
