/** Maps ids to partitions, and gives each partition its hash tag. */

import { clusterSlot, clusterSlots } from '../../redis/slots.js';

/**
 * Returns the hash tag of a partition: the shortest text that starts with the partition's number and whose cluster slot
 * is in the partition's share of all slots. Partitions are thus distributed over masters as evenly as slots.
 */
function tagFor(partition: number, partitions: number): string {
  for (let n = 0; ; n++) {
    const tag = `${partition}.${n.toString(36)}`;
    if (Math.floor((clusterSlot(tag) * partitions) / clusterSlots) === partition) return tag;
  }
}

export type Partitions = ReturnType<typeof layPartitions>;

/**
 * Computes the layout of `count` partitions (1 to 1000). All nodes compute the same layout, because it depends only on
 * `count`.
 */
export function layPartitions(count: number) {
  const names = Array.from({ length: count }, (_, i) => tagFor(i, count));
  const tags = names.map((name) => `{${name}}`);
  return {
    count,
    slots: names.map(clusterSlot),
    of(id: number): number {
      // Spreads adjacent ids over different partitions, even if all ids are multiples of a power of two.
      const whole = Math.abs(id);
      const mixed = Math.imul(((whole % 2 ** 32) ^ Math.floor(whole / 2 ** 32)) >>> 0, 0x9e3779b1) >>> 0;
      return Math.floor((mixed / 2 ** 32) * count);
    },
    tag: (partition: number) => tags[partition] as string,
  };
}
