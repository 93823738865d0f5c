/** Lets components subscribe to state outside of React. */
import { useSyncExternalStore } from 'react';
import { Cell, Signal } from './cell.js';

export { Cell, Signal };

/** Redraws the calling component after each change. */
export function useSignal(signal: Signal): number {
  return useSyncExternalStore(signal.subscribe, signal.version);
}

export function useCell<T>(cell: Cell<T>): T {
  useSignal(cell);
  return cell.value;
}
