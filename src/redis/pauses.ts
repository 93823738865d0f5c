/** How long calls on a partition could not run because its slot was being moved, told once it is over. */

export interface Pause {
  readonly partition: number;
  /** From the first call that could not run to the first that ran again, in milliseconds. */
  readonly ms: number;
  /** Calls that waited in vain and changed nothing. */
  readonly refused: number;
}

export interface Pauses {
  /** A call could not run: begins a pause, if there is none. */
  began(partition: number): void;
  /** A call was refused since its slot is on its way. */
  refused(partition: number): void;
  /** A call ran: ends a pause, if there was one. */
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
      // Nearly always nothing is on its way.
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
