/** Holds state outside of React to which components can subscribe. Code that changes the state calls `changed`. */
import { useSyncExternalStore } from 'react';

export class Signal {
  #version = 0;
  readonly #listeners = new Set<() => void>();

  changed = (): void => {
    this.#version++;
    for (const listener of this.#listeners) listener();
  };

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  version = (): number => this.#version;
}

/** Redraws the calling component after each change. */
export function useSignal(signal: Signal): number {
  return useSyncExternalStore(signal.subscribe, signal.version);
}

/** Holds a single value to which components can subscribe. */
export class Cell<T> extends Signal {
  value: T;

  constructor(value: T) {
    super();
    this.value = value;
  }

  set(value: T): void {
    if (Object.is(value, this.value)) return;
    this.value = value;
    this.changed();
  }
}

export function useCell<T>(cell: Cell<T>): T {
  useSignal(cell);
  return cell.value;
}
