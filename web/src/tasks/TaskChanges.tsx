/** How the files that a task changed differ from the commit at which it began. */
import type { ReactNode } from "react";
import { call } from "../api/http";
import { useKnown } from "../api/known";
import type { TaskView } from "../api/types.gen";
import { ChangedFiles } from "../ui/FileChanges";
import { AsOf, Show } from "../ui/Known";
import shared from "../ui/shared.module.css";
import styles from "./TaskChanges.module.css";

export function TaskChanges({ task }: { readonly task: TaskView }): ReactNode {
  const known = useKnown({
    queryKey: ["task-diff", task.id, task.finished_at],
    queryFn: () => call("GET /v1/tasks/{id}/diff", { path: { id: task.id } }),
  });
  return (
    <div className={styles.changes} tabIndex={0} role="region" aria-label="Changes">
      <AsOf known={known} />
      <Show known={known}>
        {(found) => (
          <>
            <ChangedFiles found={found} />
            <p className={shared.faint}>
              The files as they are now: what was changed in them before or after this task is shown, too.
            </p>
          </>
        )}
      </Show>
    </div>
  );
}
