/** A value that components subscribe to. */
import { useSyncExternalStore } from "react";

export class Store<T> {
  private readonly subscribers = new Set<() => void>();

  constructor(private value: T) {}

  get = (): T => this.value;

  set = (value: T): void => {
    if (Object.is(value, this.value)) return;
    this.value = value;
    for (const tell of [...this.subscribers]) tell();
  };

  subscribe = (tell: () => void): (() => void) => {
    this.subscribers.add(tell);
    return () => this.subscribers.delete(tell);
  };
}

export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, store.get);
}
