/** Two panes: the list, and a conversation or the beginning of one. On a phone one at a time. */
import { lazy, type ReactNode, Suspense } from "react";
import { Link } from "wouter";
import { DrawerButton } from "../shell/drawer";
import { Bar } from "../ui/Bar";
import { buttonClass } from "../ui/Button";
import { Empty, Loading } from "../ui/Empty";
import shared from "../ui/shared.module.css";
import { Banners } from "./Banner";
import styles from "./ChatPage.module.css";
import { Conversation } from "./Conversation";
import pane from "./pane.module.css";
import { useSessions } from "./queries";
import { SessionList } from "./SessionList";

export const loadNewSession = () => import("./NewSession");
const NewSession = lazy(loadNewSession);

export function ChatPage({ id, isNew = false }: { readonly id: string; readonly isNew?: boolean }): ReactNode {
  return (
    <div className={`${styles.page} ${id || isNew ? styles.inConversation : styles.inList}`}>
      <div className={styles.list}>
        <SessionList current={id} isMain={!id && !isNew} />
      </div>
      <div className={styles.conversation}>
        {id ? (
          <Conversation key={id} id={id} />
        ) : isNew ? (
          <Suspense fallback={<Loading />}>
            <NewSession />
          </Suspense>
        ) : (
          <Choose />
        )}
      </div>
    </div>
  );
}

function Choose(): ReactNode {
  const { known } = useSessions(false);
  const none = known.state === "known" && known.value.length === 0;
  return (
    <section className={pane.pane} aria-label="Conversation">
      <Bar>
        <span className={shared.grow} />
        <DrawerButton />
      </Bar>
      <Banners />
      <Empty
        title={none ? "Begin with a session" : "Choose a session"}
        action={
          <Link className={buttonClass({ primary: true })} href="/new">
            New session
          </Link>
        }
      >
        A session is a conversation with an agent. Close this tab whenever you like: the work continues.
      </Empty>
    </section>
  );
}
