/** Ctrl F: the browser's own search sees only what is rendered, so this one searches the whole conversation. */
import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { found } from "../log/find";
import type { Item } from "../log/model";
import { Button } from "../ui/Button";
import { useSettled } from "../ui/hooks";
import { Icon } from "../ui/Icon";
import shared from "../ui/shared.module.css";
import styles from "./FindBar.module.css";

export function FindBar({
  items,
  onJump,
}: {
  readonly items: readonly Item[];
  readonly onJump: (version: number) => void;
}): ReactNode {
  const [open, setOpen] = useState(false);
  const [text, setText] = useState("");
  const [at, setAt] = useState(-1);
  const field = useRef<HTMLInputElement>(null);
  const wanted = useSettled(open ? text.trim() : "", 120);
  const hits = useMemo(() => found(items, wanted), [items, wanted]);

  useEffect(() => {
    const pressed = (event: globalThis.KeyboardEvent): void => {
      if (!(event.ctrlKey || event.metaKey) || event.key !== "f" || event.shiftKey || event.altKey) return;
      // Twice: the browser's own.
      if (document.activeElement === field.current || document.querySelector("[role=dialog]")) return;
      event.preventDefault();
      setOpen(true);
      requestAnimationFrame(() => field.current?.select());
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
  useHighlight(wanted);

  if (!open) return null;
  const go = (step: number): void => {
    if (hits.length === 0) return;
    const next = at < 0 && step < 0 ? hits.length - 1 : (at + step + hits.length) % hits.length;
    setAt(next);
    onJump(hits[next] ?? 0);
    requestAnimationFrame(() => field.current?.focus());
  };
  const close = (): void => {
    setOpen(false);
    setText("");
  };
  const key = (event: KeyboardEvent): void => {
    if (event.key === "Escape") {
      event.preventDefault();
      close();
      document.querySelector<HTMLElement>("[data-composer] textarea")?.focus();
    } else if (event.key === "Enter") {
      event.preventDefault();
      go(event.shiftKey ? -1 : 1);
    }
  };
  return (
    <div className={styles.find} role="search" aria-label="Search in this conversation" onKeyDown={key}>
      <div className={`${shared.field} ${shared.grow}`}>
        <Icon name="search" />
        <input
          ref={field}
          type="search"
          placeholder="Search in this conversation"
          aria-label="Search in this conversation"
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setAt(-1);
          }}
        />
        {wanted && (
          <span className={shared.faint} role="status">
            {hits.length === 0 ? "none" : at < 0 ? `${hits.length} found` : `${at + 1} of ${hits.length}`}
          </span>
        )}
      </div>
      <Button quiet icon aria-label="Previous match" disabled={hits.length === 0} onClick={() => go(-1)}>
        <Icon name="left" />
      </Button>
      <Button quiet icon aria-label="Next match" disabled={hits.length === 0} onClick={() => go(1)}>
        <Icon name="right" />
      </Button>
      <Button quiet icon aria-label="Close the search" onClick={close}>
        <Icon name="close" />
      </Button>
      <p className={shared.faint}>
        Searches the whole conversation. The browser's own search (press Ctrl F again) covers only what is on the
        screen.
      </p>
    </div>
  );
}

/** Mark what is on the screen, where the browser can do that without touching the text. */
function useHighlight(wanted: string): void {
  useEffect(() => {
    if (!wanted || !("highlights" in CSS)) return;
    const flow = document.getElementById("conversation");
    const mark = (): void => {
      CSS.highlights.set("found", new Highlight(...(flow ? ranges(flow, wanted.toLowerCase()) : [])));
    };
    mark();
    const watch = new MutationObserver(mark);
    if (flow) watch.observe(flow, { childList: true, subtree: true, characterData: true });
    return () => {
      watch.disconnect();
      CSS.highlights.delete("found");
    };
  }, [wanted]);
}

function ranges(root: Node, wanted: string): Range[] {
  const found: Range[] = [];
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const said = node.textContent ?? "";
    const text = said.toLowerCase();
    if (text.length !== said.length) continue; // letters that grow when they are folded: places would not fit
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + wanted.length);
      found.push(range);
    }
  }
  return found;
}
