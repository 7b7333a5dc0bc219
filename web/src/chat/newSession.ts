import { call } from "../api/http";
import { toastError } from "../ui/toasts";

export async function newSession(go: (to: string) => void): Promise<void> {
  try {
    const { session } = await call("POST /v1/sessions", { body: {} });
    go(`/s/${session}`);
  } catch (error) {
    toastError(error);
  }
}
