/** Ctrl K: find or do anything. */
import { Autocomplete } from "@base-ui/react/autocomplete";
import { Dialog } from "@base-ui/react/dialog";
import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { type Known, knownValue } from "../api/known";
import { useCardSearch } from "../board/queries";
import { newSession } from "../chat/newSession";
import { useSearch, useSessions } from "../chat/queries";
import { useTasks } from "../tasks/queries";
import { cardLabel, cardPath, taskName } from "../text";
import { useSettled } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import shared from "../ui/shared.module.css";
import { taskIcon } from "../ui/states";
import { toggleDrawer } from "./drawer";
import { overlay } from "./overlay";
import styles from "./Palette.module.css";
import { setTheme, switchTheme } from "./theme";

interface Offer {
  readonly key: string;
  readonly icon: string;
  readonly word: string;
  readonly hint: string;
  readonly act: () => void;
}

const MOST = 13;

function nothingWords(asked: readonly Known<unknown>[]): string {
  if (asked.some((one) => one.state === "unknown" || (one.state === "known" && !one.current)))
    return "Nothing found in what this browser knows; the gateway does not answer.";
  return asked.some((one) => one.state === "loading") ? "Searching…" : "Nothing found.";
}

export function Palette({ onClose }: { readonly onClose: () => void }): ReactNode {
  const [text, setText] = useState("");
  const [, go] = useLocation();
  const wanted = text.trim().toLowerCase();
  const asked = useSettled(wanted);
  const { rows: sessions, known: ofSessions } = useSessions(false, asked);
  const { rows: tasks, known: ofTasks } = useTasks("", "", asked);
  const ofTexts = useSearch(asked.length > 2 ? asked : "");
  const found = knownValue(ofTexts)?.hits ?? [];
  const ofCards = useCardSearch(asked);
  const cards = knownValue(ofCards) ?? [];
  const offers: readonly Offer[] = [
    { key: "new", icon: "plus", word: "New session", hint: "n", act: () => newSession(go) },
    { key: "home", icon: "home", word: "Go to Home", hint: "g h", act: () => go("/home") },
    { key: "chats", icon: "chat", word: "Go to Chats", hint: "g c", act: () => go("/s") },
    { key: "tasks", icon: "tasks", word: "Go to Tasks", hint: "g t", act: () => go("/tasks") },
    { key: "board", icon: "board", word: "Go to Board", hint: "g b", act: () => go("/board") },
    { key: "settings", icon: "settings", word: "Go to Settings", hint: "g s", act: () => go("/settings") },
    { key: "drawer", icon: "tasks", word: "Background tasks", hint: "t", act: () => toggleDrawer() },
    { key: "theme", icon: "theme", word: "Switch the theme", hint: "", act: switchTheme },
    { key: "theme-system", icon: "theme", word: "Theme as the system", hint: "", act: () => setTheme("system") },
    { key: "keys", icon: "more", word: "All keys", hint: "?", act: () => overlay.set("keys") },
    ...sessions.map((row) => ({
      key: `session/${row.id}`, // a session and its task share an id
      icon: "chat",
      word: row.title || "New session",
      hint: "session",
      act: () => go(`/s/${row.id}`),
    })),
    ...cards.map((card) => ({
      key: `card/${card.id}`,
      icon: "card",
      word: card.title,
      hint: `${cardLabel(card.number, card.id)}, ${card.status}`,
      act: () => go(cardPath(card)),
    })),
    ...tasks.map((task) => ({
      key: `task/${task.id}`,
      icon: taskIcon(task),
      word: taskName(task),
      hint: `${task.kind === "process" ? "command" : task.kind}, ${task.state}`,
      act: () => go(`/tasks/${task.id}`),
    })),
  ].filter((offer) => !wanted || offer.word.toLowerCase().includes(wanted));
  const hits = found.map((hit) => ({
    key: `${hit.session}#${hit.version}`,
    icon: "search",
    word: hit.snippet.replaceAll(/\s+/g, " "),
    hint: hit.title,
    act: () => go(`/s/${hit.session}#${hit.version}`),
  }));
  const shown = [...offers.slice(0, MOST), ...hits].slice(0, MOST + 4);
  return (
    <Dialog.Root open onOpenChange={(open) => open || onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className={styles.backdrop} />
        <Dialog.Popup className={styles.popup} aria-label="Find or do anything">
          <Autocomplete.Root
            open
            inline
            items={shown}
            mode="none"
            autoHighlight="always"
            keepHighlight
            value={text}
            onValueChange={(value, { reason }) => {
              if (reason !== "item-press") setText(value);
            }}
            itemToStringValue={(offer: Offer) => offer.word}
          >
            <div className={shared.field}>
              <Icon name="search" />
              <Autocomplete.Input
                aria-label="Find or do anything"
                placeholder="Find or do anything"
                onKeyDown={(event) => {
                  if (event.key !== "Escape") return;
                  event.preventDefault(); // else the first Esc would only empty the field
                  onClose();
                }}
              />
            </div>
            <Autocomplete.Empty className={styles.empty}>
              {asked === wanted
                ? nothingWords([ofSessions, ofTasks, ofCards, ...(asked.length > 2 ? [ofTexts] : [])])
                : "Searching…"}
            </Autocomplete.Empty>
            <Autocomplete.List className={styles.list} aria-label="What there is">
              {(offer: Offer) => (
                <Autocomplete.Item
                  key={offer.key}
                  value={offer}
                  className={styles.offer}
                  onClick={() => {
                    onClose();
                    offer.act();
                  }}
                >
                  <Icon name={offer.icon} />
                  <span className={styles.word} dir="auto">
                    {offer.word}
                  </span>
                  <span className={styles.hint}>{offer.hint}</span>
                </Autocomplete.Item>
              )}
            </Autocomplete.List>
          </Autocomplete.Root>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
