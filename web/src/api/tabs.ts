/** What the tabs of this browser tell each other: nothing that the gateway would not say too, only sooner. */
export interface TabMessage {
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

export function postToTabs(message: TabMessage): void {
  channel?.postMessage(message);
}

export function onTabMessage(heard: (message: TabMessage) => void): void {
  channel?.addEventListener("message", (event: MessageEvent<TabMessage>) => heard(event.data));
}
