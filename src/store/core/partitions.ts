/** Which partition an id lives in, and the hash tag of each partition. */

import { clusterSlot, clusterSlots } from '../../redis/slots.js';

/** The shortest text that begins with the partition's number and whose slot lies in the partition's own share of
 * all slots, so that partitions spread over masters as evenly as slots do. */
function tagFor(partition: number, partitions: number): string {
  for (let n = 0; ; n++) {
    const tag = `${partition}.${n.toString(36)}`;
    if (Math.floor((clusterSlot(tag) * partitions) / clusterSlots) === partition) return tag;
  }
}

export interface Partitions {
  readonly count: number;
  /** The partition of a user, bot, group or channel by its id. */
  of(id: number): number;
  /** The hash tag with its braces. */
  tag(partition: number): string;
  /** The slot of a Redis Cluster in which each partition lies. */
  readonly slots: readonly number[];
}

/** Lays out `count` partitions (1 to 1000). The layout depends on the count alone: every node computes the same. */
export function layPartitions(count: number): Partitions {
  const names = Array.from({ length: count }, (_, i) => tagFor(i, count));
  const tags = names.map((name) => `{${name}}`);
  return {
    count,
    slots: names.map(clusterSlot),
    of(id) {
      // Neighbouring ids go to different partitions, and so do ids that share a parity or a power of two.
      const whole = Math.abs(id);
      const mixed = Math.imul(((whole % 2 ** 32) ^ Math.floor(whole / 2 ** 32)) >>> 0, 0x9e3779b1) >>> 0;
      return Math.floor((mixed / 2 ** 32) * count);
    },
    tag: (partition) => tags[partition] as string,
  };
}
