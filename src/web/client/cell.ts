/** Holds state to which code can subscribe. Code that changes the state calls `changed`. */
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

/** Holds a single value to which code can subscribe. */
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
