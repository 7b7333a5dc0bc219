/** What the tabs of this browser tell each other: nothing that the gateway would not say too, only sooner. */
export interface Told {
  /** Read up to here in another tab. */
  readonly seen?: { readonly session: string; readonly version: number };
  /** Somebody looked through what happened. */
  readonly looked?: number;
}

let channel: BroadcastChannel | null = null;
try {
  channel = new BroadcastChannel("holdfast");
} catch {
  // not in this browser, or not with its settings: every tab asks the gateway by itself
}

export function tellTabs(told: Told): void {
  channel?.postMessage(told);
}

export function hearTabs(heard: (told: Told) => void): void {
  channel?.addEventListener("message", (message: MessageEvent<Told>) => heard(message.data));
}
