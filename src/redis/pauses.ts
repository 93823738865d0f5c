/** Measures how long calls on a partition were blocked by a slot migration. Reported once the migration is over. */

export interface Pause {
  readonly partition: number;
  /** Milliseconds from the first blocked call to the next successful one. */
  readonly ms: number;
  /** Calls that waited too long and were rejected without a change. */
  readonly refused: number;
}

export interface Pauses {
  /** Records a blocked call. Starts a pause if none is open. */
  began(partition: number): void;
  /** Records a call rejected because of the migration. */
  refused(partition: number): void;
  /** Records a successful call. Ends an open pause. */
  ran(partition: number): void;
  readonly stats: { readonly refused: number; readonly under_way: number; readonly longest_ms: number };
}

export function createPauses(
  onEnd: (pause: Pause) => void = () => {},
  now = () => performance.now(),
): Pauses {
  const open = new Map<number, { readonly since: number; refused: number }>();
  let refused = 0;
  let longest = 0;
  return {
    began(partition) {
      if (!open.has(partition)) open.set(partition, { since: now(), refused: 0 });
    },
    refused(partition) {
      refused++;
      const pause = open.get(partition);
      if (pause) pause.refused++;
    },
    ran(partition) {
      // Fast path: there is almost never an open pause.
      const pause = open.size === 0 ? undefined : open.get(partition);
      if (pause === undefined) return;
      open.delete(partition);
      const ms = Math.round(now() - pause.since);
      longest = Math.max(longest, ms);
      onEnd({ partition, ms, refused: pause.refused });
    },
    get stats() {
      return { refused, under_way: open.size, longest_ms: longest };
    },
  };
}
