import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { call, Refused } from "../api/http";
import type { TaskView } from "../api/types.gen";
import { byWhom } from "../text";
import { agentSession, starter } from "./taskWords";

/** Who started a task, and for which session. */
export function StartedBy({ task }: { readonly task: TaskView }): ReactNode {
  const id = task.session || agentSession(task);
  const session = id && <SessionLink id={id} />;
  switch (starter(task)) {
    case "you":
      return session ? <>you, for {session}</> : "you";
    case "agent":
      return session ? <>agent of {session}</> : byWhom(task.started_by);
    case "board":
      return /^(board)?$/i.test(task.board ?? "") ? "the board" : `board ${task.board}`;
    default:
      return session ? (
        <>
          {byWhom(task.started_by)}, for {session}
        </>
      ) : (
        byWhom(task.started_by)
      );
  }
}

/** By its title; of a session that was deleted nothing is left but that. */
function SessionLink({ id }: { readonly id: string }): ReactNode {
  const session = useQuery({
    queryKey: ["session", id, "title"],
    queryFn: async () => (await call("GET /v1/sessions/{id}", { path: { id } })).session.title,
    staleTime: 300_000,
    retry: false,
  });
  if (session.error instanceof Refused) return "a session that was deleted";
  return <Link href={`/s/${id}`}>{session.data || "a session"}</Link>;
}
