/** Tabs of one view: arrows move between them, Tab goes into the panel. */
import { Tabs as Base } from "@base-ui/react/tabs";
import type { ReactNode } from "react";
import styles from "./Tabs.module.css";

export interface TabEntry<K extends string> {
  readonly id: K;
  readonly word: ReactNode;
  readonly panel: () => ReactNode;
}

export function Tabs<K extends string>({
  name,
  tabs,
  chosen,
  onChoose,
}: {
  readonly name: string;
  readonly tabs: readonly TabEntry<K>[];
  readonly chosen: K;
  readonly onChoose: (id: K) => void;
}): ReactNode {
  return (
    <Base.Root className={styles.root} value={chosen} onValueChange={(id: K) => onChoose(id)}>
      <Base.List className={styles.list} aria-label={name} activateOnFocus>
        {tabs.map(({ id, word }) => (
          <Base.Tab key={id} value={id} className={styles.tab}>
            {word}
          </Base.Tab>
        ))}
      </Base.List>
      {tabs.map(({ id, panel }) => (
        <Base.Panel key={id} value={id} className={styles.panel}>
          {id === chosen && panel()}
        </Base.Panel>
      ))}
    </Base.Root>
  );
}
