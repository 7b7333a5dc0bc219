/** Ctrl K: find or do anything. */
import { type KeyboardEvent, type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { useCardSearch } from "../board/queries";
import { newSession } from "../chat/newSession";
import { useSearch, useSessions } from "../chat/queries";
import { useTasks } from "../tasks/queries";
import { cardLabel, cardPath } from "../text";
import { useModal, useSettled } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import { taskIcon } from "../ui/states";
import { overlay } from "./overlay";
import { toggleDrawer } from "./TasksDrawer";
import { setTheme, switchTheme } from "./theme";

interface Offer {
  readonly key: string;
  readonly icon: string;
  readonly word: string;
  readonly hint: string;
  readonly act: () => void;
}

const MOST = 12;

export function Palette({ onClose }: { readonly onClose: () => void }): ReactNode {
  const dialog = useModal();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [, go] = useLocation();
  const wanted = text.trim().toLowerCase();
  const asked = useSettled(wanted);
  const sessions = useSessions(false, asked).rows;
  const tasks = useTasks("", "", asked).rows;
  const found = useSearch(asked.length > 2 ? asked : "").data?.hits ?? [];
  const cards = useCardSearch(asked);
  const offers: readonly Offer[] = [
    { key: "new", icon: "plus", word: "New session", hint: "n", act: () => newSession(go) },
    { key: "home", icon: "home", word: "Go to Home", hint: "g h", act: () => go("/home") },
    { key: "tasks", icon: "tasks", word: "Go to Tasks", hint: "g t", act: () => go("/tasks") },
    { key: "board", icon: "board", word: "Go to Board", hint: "g b", act: () => go("/board") },
    { key: "drawer", icon: "tasks", word: "Background tasks drawer", hint: "t", act: () => toggleDrawer() },
    { key: "settings", icon: "settings", word: "Go to Settings", hint: "g s", act: () => go("/settings") },
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
      word: task.title,
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
  const choose = (offer: Offer | undefined): void => {
    if (!offer) return;
    onClose();
    offer.act();
  };
  const key = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      setAt((at + step + shown.length) % Math.max(1, shown.length));
    } else if (event.key === "Escape") {
      event.preventDefault(); // a search field would only be emptied by it
      onClose();
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(shown[at]);
    }
  };
  return (
    <dialog
      ref={dialog}
      aria-label="Find or do anything"
      className="palette"
      onClose={onClose}
      onKeyDown={key}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <div className="field">
        <Icon name="search" />
        <input
          type="search"
          role="combobox"
          aria-expanded="true"
          aria-controls="offers"
          aria-activedescendant={`offer-${at}`}
          aria-label="Find or do anything"
          placeholder="Find or do anything"
          autoFocus
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setAt(0);
          }}
        />
      </div>
      <ul role="listbox" id="offers" aria-label="What there is">
        {shown.map((offer, index) => (
          <li
            key={offer.key}
            id={`offer-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => choose(offer)}
            onPointerMove={() => setAt(index)}
          >
            <Icon name={offer.icon} />
            <span className="cut grow">{offer.word}</span>
            <span className="faint cut">{offer.hint}</span>
          </li>
        ))}
        {shown.length === 0 && <li className="muted">Nothing found.</li>}
      </ul>
    </dialog>
  );
}
