/** Whether the drawer of background tasks is open, on every page, and the button that opens it. */
import type { ReactNode } from "react";
import { knownValue } from "../api/known";
import { load, save } from "../api/storage";
import { Store, useStore } from "../api/store";
import { useRunning } from "../tasks/queries";
import { Button } from "../ui/Button";
import { Icon } from "../ui/Icon";

export const drawer = new Store(load("drawer", false));

export function toggleDrawer(open = !drawer.get()): void {
  drawer.set(open);
  save("drawer", open);
}

export function DrawerButton(): ReactNode {
  const open = useStore(drawer);
  const running = knownValue(useRunning())?.length;
  return (
    <Button
      quiet
      data-drawer-button
      aria-expanded={open}
      aria-label={running === undefined ? "Background tasks" : `Background tasks, ${running} running`}
      onClick={() => toggleDrawer()}
    >
      <Icon name="tasks" />
      {running || ""}
    </Button>
  );
}
