/** The whole output as a file, as it was written: asked for piece by piece, and put together here. */
import { toastError } from "../ui/toasts";

const PIECE = 1 << 20;

export async function download(task: string, name: string): Promise<void> {
  try {
    const pieces: Blob[] = [];
    let offset = 0;
    for (;;) {
      const answer = await fetch(`/v1/tasks/${task}/output?raw=true&offset=${offset}&limit=${PIECE}`);
      if (!answer.ok) throw new Error(`The gateway answered ${answer.status}.`);
      pieces.push(await answer.blob());
      const next = Number(answer.headers.get("holdfast-next"));
      if (next <= offset || next >= Number(answer.headers.get("holdfast-size"))) break;
      offset = next;
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(pieces, { type: "text/plain" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  } catch (error) {
    toastError(error);
  }
}
