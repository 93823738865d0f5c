/** Lets components subscribe to state that is stored outside React. */
import { useSyncExternalStore } from 'react';
import { Cell, Signal } from './cell.js';

export { Cell, Signal };

/** A hook that redraws the calling component after each change of the signal. */
export function useSignal(signal: Signal): number {
  return useSyncExternalStore(signal.subscribe, signal.version);
}

export function useCell<T>(cell: Cell<T>): T {
  useSignal(cell);
  return cell.value;
}
