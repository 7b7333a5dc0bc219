/** Which board is shown; new boards, and those that are put away. */
import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { call } from "../api/http";
import { type Known, knownValue } from "../api/known";
import { queryClient } from "../api/queryClient";
import type { BoardView } from "../api/types.gen";
import { plural } from "../text";
import { Button } from "../ui/Button";
import { Confirm } from "../ui/Confirm";
import { TextField } from "../ui/fields";
import form from "../ui/form.module.css";
import { Icon } from "../ui/Icon";
import { Menu } from "../ui/Menu";
import shared from "../ui/shared.module.css";
import { toastError } from "../ui/toasts";

export function BoardSwitch({
  boards,
  current,
}: {
  readonly boards: Known<readonly BoardView[]>;
  readonly current: string;
}): ReactNode {
  const [, go] = useLocation();
  const [title, setTitle] = useState<string | null>(null);
  const [archiving, setArchiving] = useState<BoardView | null>(null);
  const here = knownValue(boards)?.find((one) => one.id === current);
  const id = (title ?? "")
    .trim()
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, 64);
  const make = (): void =>
    void call("POST /v1/boards", { body: { board: id, title: title?.trim() ?? null } }).then(({ board }) => {
      setTitle(null);
      go(`/board/${board}`);
    }, toastError);
  const archive = ({ id: name }: BoardView): void => {
    setArchiving(null);
    void call("POST /v1/boards/{name}/archive", { path: { name } }).then(() => {
      // Before the list comes again.
      queryClient.setQueryData<readonly BoardView[]>(["boards"], (known) => known?.filter((one) => one.id !== name));
      go("/board");
    }, toastError);
  };
  return (
    <>
      <Menu
        name="Choose a board"
        icon="down"
        small
        entries={[
          ...(boards.state === "known"
            ? boards.value.map((one) => ({
                word: `${one.title || one.id} (${one.cards})`,
                icon: one.id === current ? "done" : "board",
                act: () => go(`/board/${one.id}`),
              }))
            : [{ word: "Which boards there are is not known", disabled: true }]),
          { word: "New board…", icon: "plus", act: () => setTitle("") },
          ...(here
            ? [{ word: "Archive this board…", icon: "close", danger: true, act: () => setArchiving(here) }]
            : []),
        ]}
      />
      {title !== null && (
        <Confirm
          title="New board"
          verb="Make the board"
          danger={false}
          disabled={!id}
          onNo={() => setTitle(null)}
          onYes={make}
        >
          <div className={`${form.group} ${form.form}`}>
            <TextField first label="Title of the board" maxLength={80} value={title} onChange={setTitle} />
          </div>
          {id && (
            <p className={shared.faint}>
              Its name is <code>{id}</code>.
            </p>
          )}
        </Confirm>
      )}
      {archiving && (
        <Confirm
          title={`Archive the board “${archiving.title || archiving.id}”?`}
          verb="Archive 1 board"
          onNo={() => setArchiving(null)}
          onYes={() => archive(archiving)}
        >
          <p>
            It leaves the list, and no card of it is started any more. Its {plural(archiving.cards, "card")} and all
            that was done on {archiving.cards === 1 ? "it" : "them"} stay.
          </p>
        </Confirm>
      )}
    </>
  );
}

export function PauseButton({ board }: { readonly board: BoardView }): ReactNode {
  const path = { name: board.id };
  const paused = board.paused_by !== "";
  const act = (): void =>
    void call(paused ? "POST /v1/boards/{name}/resume" : "POST /v1/boards/{name}/pause", { path }).catch(toastError);
  return (
    <Button
      quiet={!paused}
      icon
      aria-label={paused ? "Resume the board" : "Pause the board"}
      title={paused ? "Start cards again" : "Start no more cards; what runs goes on"}
      onClick={act}
    >
      <Icon name={paused ? "play" : "pause"} />
    </Button>
  );
}
