import type { ReactNode } from "react";
import { Link } from "wouter";
import { Banners } from "../chat/Banner";
import { Bar } from "../ui/Bar";
import { Button, buttonClass } from "../ui/Button";
import { Empty } from "../ui/Empty";
import { useTitle } from "../ui/hooks";
import shared from "../ui/shared.module.css";
import { DrawerButton } from "./drawer";
import { overlay } from "./overlay";

/** For an address that no page has. */
export function NotFound(): ReactNode {
  useTitle("No such page");
  return (
    <div className={shared.page}>
      <Bar>
        <h1>No such page</h1>
        <span className={shared.grow} />
        <DrawerButton />
      </Bar>
      <Banners />
      <Empty
        title="There is no page at this address"
        action={
          <span className={shared.row}>
            <Button onClick={() => overlay.set("palette")}>Find anything</Button>
            <Link className={buttonClass({ primary: true })} href="/home">
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
