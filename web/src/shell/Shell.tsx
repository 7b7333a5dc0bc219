import { lazy, type ReactNode, Suspense } from "react";
import { useStore } from "../api/store";
import { lazyPart } from "../ui/lazyPart";
import { Toasts } from "../ui/toasts";
import { WhyDialog } from "../ui/Why";
import { drawer } from "./drawer";
import { useKeys } from "./keyboard";
import { useLostFocus } from "./lostFocus";
import { overlay } from "./overlay";
import { Rail } from "./Rail";
import styles from "./Shell.module.css";
import { useSwipe } from "./swipe";

const loadDrawer = () => import("./TasksDrawer");
const TasksDrawer = lazyPart(loadDrawer);
if (drawer.get()) loadDrawer().catch(() => undefined); // it is open: it comes while the gateway says who we are

const Palette = lazy(() => import("./Palette").then((found) => ({ default: found.Palette })));
const KeyboardHelp = lazy(() => import("./KeyboardHelp"));

const close = (): void => overlay.set(null);

export function Shell({ children }: { readonly children: ReactNode }): ReactNode {
  const open = useStore(drawer);
  const over = useStore(overlay);
  useKeys();
  useLostFocus();
  useSwipe();
  return (
    <div className={styles.app}>
      <Rail />
      <main id="main" className={styles.main} tabIndex={-1}>
        <div className={`${styles.page} ${open ? styles.withDrawer : ""}`}>
          {children}
          {open && <TasksDrawer />}
        </div>
      </main>
      <Toasts />
      <Suspense>
        {over === "palette" && <Palette onClose={close} />}
        {over === "keys" && <KeyboardHelp onClose={close} />}
        {over !== null && typeof over === "object" && <WhyDialog {...over.why} onClose={close} />}
      </Suspense>
    </div>
  );
}
