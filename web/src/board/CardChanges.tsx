/** What a card made: the files that differ from what its workspace began with, and their lines. */
import type { ReactNode } from "react";
import { call } from "../api/http";
import { useKnown } from "../api/known";
import type { CardView, FileChanges } from "../api/types.gen";
import { ChangedFiles } from "../ui/FileChanges";
import { AsOf, Show } from "../ui/Known";

export function CardChanges({ card }: { readonly card: Pick<CardView, "id" | "version" | "status"> }): ReactNode {
  const known = useKnown({
    queryKey: ["card-diff", card.id, card.version],
    queryFn: () => call("GET /v1/cards/{id}/diff", { path: { id: card.id } }),
    placeholderData: (before: FileChanges | undefined) => before,
    refetchInterval: card.status === "running" ? 10_000 : false,
  });
  return (
    <>
      <AsOf known={known} />
      <Show known={known}>{(found) => <ChangedFiles found={found} />}</Show>
    </>
  );
}
