/** Lets components subscribe to state that is stored outside React. */
import { useSyncExternalStore } from 'react';
import { Cell, Signal } from './cell.js';

export { Cell, Signal };

/** Redraws the component that calls this hook after each change. */
export function useSignal(signal: Signal): number {
  return useSyncExternalStore(signal.subscribe, signal.version);
}

export function useCell<T>(cell: Cell<T>): T {
  useSignal(cell);
  return cell.value;
}
