/** A value that can be watched. */
import { useSyncExternalStore } from "react";

export class Cell<T> {
  private readonly watchers = new Set<() => void>();

  constructor(private value: T) {}

  get = (): T => this.value;

  set = (value: T): void => {
    if (Object.is(value, this.value)) return;
    this.value = value;
    for (const tell of [...this.watchers]) tell();
  };

  watch = (tell: () => void): (() => void) => {
    this.watchers.add(tell);
    return () => this.watchers.delete(tell);
  };
}

export function useCell<T>(cell: Cell<T>): T {
  return useSyncExternalStore(cell.watch, cell.get);
}
