import type { ReactNode } from "react";
import { Link } from "wouter";
import { Banners } from "../chat/Banner";
import { Empty } from "../ui/Empty";
import { useTitle } from "../ui/hooks";
import { overlay } from "./overlay";
import { DrawerButton } from "./TasksDrawer";

/** For an address that no page has. */
export function NotFound(): ReactNode {
  useTitle("No such page");
  return (
    <div className="page">
      <div className="bar">
        <h1>No such page</h1>
        <span className="grow" />
        <DrawerButton />
      </div>
      <Banners />
      <Empty
        title="There is no page at this address"
        action={
          <span className="row">
            <button type="button" className="btn" onClick={() => overlay.set("palette")}>
              Find anything
            </button>
            <Link className="btn primary" href="/home">
              Go to Home
            </Link>
          </span>
        }
      >
        <code>{location.pathname}</code> may be mistyped, or what was there is gone.
      </Empty>
    </div>
  );
}
