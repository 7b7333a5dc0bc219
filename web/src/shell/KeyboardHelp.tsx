/** `?`: all keys. */
import type { ReactNode } from "react";
import { useStore } from "../api/store";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import shared from "../ui/shared.module.css";
import styles from "./KeyboardHelp.module.css";
import { letters, setLetters } from "./keyboard";

const KEYS: readonly (readonly [string, readonly (readonly [string, string])[]])[] = [
  [
    "Everywhere",
    [
      ["Ctrl K", "find or do anything"],
      ["g h · g c · g t · g b · g s", "go to Home, Chats, Tasks, Board, Settings"],
      ["n", "new session"],
      ["t", "background tasks drawer"],
      ["/", "search here"],
      ["j · k", "next, previous row"],
      ["Enter", "open it"],
      ["y", "why: of the focused row, else of the page"],
      ["Esc", "close the topmost; it never stops work"],
      ["?", "all keys"],
    ],
  ],
  [
    "In a chat",
    [
      ["Enter", "send"],
      ["Shift Enter", "a new line"],
      ["Ctrl Enter", "run in the background"],
      ["Ctrl .", "stop the turn"],
      ["↑", "in an empty field: edit the last queued message"],
      ["Alt ↑ · Alt ↓", "move a queued message"],
      ["Ctrl F", "search in the whole conversation; twice: the browser's own"],
      ["m", "first missed message"],
    ],
  ],
  [
    "On a board",
    [
      ["← → ↑ ↓", "move the focus"],
      ["Space", "lift a card; arrows carry it, Space drops it, Esc puts it back"],
      ["Enter", "open it"],
    ],
  ],
  [
    "In an output",
    [
      ["/", "search"],
      ["n · N", "next, previous match"],
      ["g · G", "start, end"],
      ["f", "follow"],
    ],
  ],
];

export default function KeyboardHelp({ onClose }: { readonly onClose: () => void }): ReactNode {
  const single = useStore(letters);
  return (
    <Dialog
      title="All keys"
      wide
      onClose={onClose}
      footer={
        <>
          <label className={`${shared.row} ${shared.grow}`}>
            <input type="checkbox" checked={single} onChange={(event) => setLetters(event.target.checked)} />
            Single letters work
          </label>
          <Button onClick={onClose}>Done</Button>
        </>
      }
    >
      {KEYS.map(([where, keys]) => (
        <section key={where}>
          <h3 className={styles.where}>{where}</h3>
          <dl className={styles.keys}>
            {keys.map(([key, what]) => [
              <dt key={key}>
                {key.split(" · ").map((one) => (
                  <span key={one} className={shared.kbd}>
                    {one}
                  </span>
                ))}
              </dt>,
              <dd key={what}>{what}</dd>,
            ])}
          </dl>
        </section>
      ))}
    </Dialog>
  );
}
