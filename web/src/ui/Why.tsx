import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useRef, useState } from "react";
import { call } from "../api/http";
import type { Subject } from "../shell/overlay";
import { useDismiss, useModal } from "./hooks";
import { Icon } from "./Icon";
import { Time } from "./Time";

const DOORS = {
  session: "GET /v1/sessions/{id}/why",
  task: "GET /v1/tasks/{id}/why",
  card: "GET /v1/cards/{id}/why",
} as const;

/** The same words as `holdfast why`, and what they rest on. */
function Answer({ of, id, onClose }: Subject & { readonly onClose: () => void }): ReactNode {
  const why = useQuery({
    queryKey: ["why", of, id],
    staleTime: 0,
    gcTime: 0,
    queryFn: () => call(DOORS[of], { path: { id } }),
  });
  const sentences = why.data?.sentences ?? [];
  const [first, ...rest] = sentences;
  return (
    <>
      <div className="row">
        <b className="grow">Why</b>
        <button type="button" className="btn quiet small icon" aria-label="Close" autoFocus onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      <p>
        {why.isError
          ? `This cannot be asked right now: ${why.error.message}`
          : (first?.text ?? (why.isLoading ? "…" : "No information."))}
      </p>
      {rest.length > 0 && (
        <dl>
          {rest.map((one, index) => [
            <dt key={`t${index}`}>
              <Time at={one.at} />
            </dt>,
            <dd key={index}>{one.text}</dd>,
          ])}
        </dl>
      )}
      {sentences.length > 0 && (
        <footer>
          {first && (
            <span className="faint">
              {first.stream.split("/")[0]} event {first.version}
            </span>
          )}
          <span className="grow" />
          <button
            type="button"
            className="btn quiet small"
            onClick={() => void navigator.clipboard?.writeText(sentences.map((one) => one.text).join("\n"))}
          >
            Copy as text
          </button>
        </footer>
      )}
    </>
  );
}

export function Why({ of, id, word = "Why?" }: Subject & { readonly word?: string }): ReactNode {
  const [place, setPlace] = useState<{ top: number; left: number } | null>(null);
  const root = useRef<HTMLSpanElement>(null);
  useDismiss(place !== null, root, () => setPlace(null));
  const toggle = (event: React.MouseEvent): void => {
    event.preventDefault();
    event.stopPropagation();
    if (place) return setPlace(null);
    const box = event.currentTarget.getBoundingClientRect();
    setPlace({
      top: Math.min(box.bottom + 6, innerHeight - 280),
      left: Math.max(8, Math.min(box.left, innerWidth - 396)),
    });
  };
  return (
    <span ref={root} className="inline" data-why={`${of}/${id}`}>
      <button type="button" className="why" aria-expanded={place !== null} onClick={toggle}>
        {word}
      </button>
      {place && (
        <div
          className="pop"
          role="dialog"
          aria-label="Why"
          style={{ position: "fixed", ...place }}
          onClick={(event) => event.stopPropagation()}
          onMouseDown={(event) => event.stopPropagation()}
        >
          <Answer of={of} id={id} onClose={() => setPlace(null)} />
        </div>
      )}
    </span>
  );
}

/** `y`: of whatever has the focus. */
export function WhyDialog({ of, id, onClose }: Subject & { readonly onClose: () => void }): ReactNode {
  return (
    <dialog ref={useModal()} aria-label="Why" className="pop !static !m-auto" onClose={onClose}>
      <Answer of={of} id={id} onClose={onClose} />
    </dialog>
  );
}
