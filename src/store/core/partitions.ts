/** Maps ids to partitions, and gives each partition its hash tag. */

import { clusterSlot, clusterSlots } from '../../redis/slots.js';

/**
 * The shortest text that starts with the partition's number and whose cluster slot lies in the partition's share of all
 * slots. This spreads partitions over masters as evenly as slots.
 */
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
  /** The hash tag of a partition, with its braces. */
  tag(partition: number): string;
  /** The Redis Cluster slot of each partition. */
  readonly slots: readonly number[];
}

/** Computes the layout of `count` partitions (1 to 1000). It depends only on the count, so every node computes the same. */
export function layPartitions(count: number): Partitions {
  const names = Array.from({ length: count }, (_, i) => tagFor(i, count));
  const tags = names.map((name) => `{${name}}`);
  return {
    count,
    slots: names.map(clusterSlot),
    of(id) {
      // Spreads adjacent ids over different partitions, and also ids that are all even or multiples of a power of two.
      const whole = Math.abs(id);
      const mixed = Math.imul(((whole % 2 ** 32) ^ Math.floor(whole / 2 ** 32)) >>> 0, 0x9e3779b1) >>> 0;
      return Math.floor((mixed / 2 ** 32) * count);
    },
    tag: (partition) => tags[partition] as string,
  };
}
