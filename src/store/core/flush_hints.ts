/**
 * Defines two hints (decision 0055): a front's request for a flush, and a flusher's announcement of a flush. Both may
 * get lost. The numbers in a hint are separated by spaces.
 */
import type { ScriptRunner } from '../../redis/scripts/scripts.js';
import type { Keys } from './keys.js';

const numbersIn = (hint: Buffer): number[] => hint.toString('latin1').split(' ').map(Number);

function tell(scripts: ScriptRunner, channel: string, hint: string): void {
  if (hint === '') return;
  // Ignores an error, because fronts do not depend on hints: they also read the progress of journals regularly.
  scripts.call('journal/tell', 0, { channel }, { hint }).catch(() => undefined);
}

/** Asks the flushers to write the journals of these partitions now. */
export const askFlush = (scripts: ScriptRunner, keys: Keys, partitions: readonly number[]): void =>
  tell(scripts, keys.flushAsked(), partitions.join(' '));

export const partitionsAsked = numbersIn;

/** Builds the hint that announces up to which versions journals are flushed. */
export const flushedHint = (marks: ReadonlyArray<readonly [partition: number, version: number]>): string =>
  marks.flat().join(' ');

export const tellFlushed = (scripts: ScriptRunner, keys: Keys, hint: string): void =>
  tell(scripts, keys.flushed(), hint);

export function marksTold(hint: Buffer): Array<readonly [partition: number, version: number]> {
  const numbers = numbersIn(hint);
  return numbers.flatMap((partition, i) =>
    i % 2 === 0 ? [[partition, numbers[i + 1] as number] as const] : [],
  );
}
