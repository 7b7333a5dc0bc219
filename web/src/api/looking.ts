/** A visible page says what it shows, so that nobody is notified of what they see. */
import { useEffect } from "react";
import { call } from "./http";

/** What this page shows now, each as often as it is shown. */
const shown: string[] = [];

/** Whether somebody sees one of these streams here. */
export const isLookedAt = (streams: readonly string[]): boolean =>
  document.visibilityState === "visible" && streams.some((stream) => shown.includes(stream));

const EVERY_MS = 10_000; // it counts for 30 s

/** Somebody looks at a session, a task or a card for as long as the component is there and the page is visible. */
export function useLooking(stream: string): void {
  useEffect(() => {
    shown.push(stream);
    const tell = (): void => {
      if (document.visibilityState !== "visible") return;
      void call("POST /v1/looking", { body: { streams: [stream] } }).catch(() => undefined); // offline: nobody is told
    };
    tell();
    const timer = setInterval(tell, EVERY_MS);
    document.addEventListener("visibilitychange", tell);
    return () => {
      shown.splice(shown.indexOf(stream), 1);
      clearInterval(timer);
      document.removeEventListener("visibilitychange", tell);
    };
  }, [stream]);
}
