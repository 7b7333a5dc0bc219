/** The node on which something runs, in a list. A long name gives way before what it stands beside. */
import type { ReactNode } from "react";
import shared from "../ui/shared.module.css";
import styles from "./NodeName.module.css";
import { useSeveralNodes } from "./queries";

interface Named {
  readonly node: string;
  readonly title?: string | undefined;
}

export function NodeName({ node, title }: { readonly node: string | undefined; readonly title?: string }): ReactNode {
  return node && <Name node={node} title={title} />;
}

/** Nothing where there is only one node: events name it all the same. */
function Name({ node, title = `On node ${node}` }: Named): ReactNode {
  return (
    useSeveralNodes() && (
      <span className={`${shared.faint} ${shared.cut} ${styles.node}`} data-node title={title}>
        @{node}
      </span>
    )
  );
}
