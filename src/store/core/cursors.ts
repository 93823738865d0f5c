/**
 * Encodes and decodes the cursors of event streams. A cursor maps each partition to the version up to which changes
 * were sent.
 */

export type Cursors = Map<number, number>;

export function parseCursor(text: string, partitions: number): Cursors {
  const cursors: Cursors = new Map();
  for (const part of text.split(',')) {
    const match = /^([0-9a-z]{1,2})\.([0-9a-z]{1,11})$/.exec(part);
    const partition = Number.parseInt(match?.[1] ?? '', 36);
    if (match && partition < partitions)
      cursors.set(partition, Math.max(1, Number.parseInt(match[2] as string, 36)));
  }
  return cursors;
}

/** Encodes cursors. Returns '-' if there are none, because an empty text would start a new stream. */
export const cursorText = (cursors: Cursors): string =>
  [...cursors].map(([partition, version]) => `${partition.toString(36)}.${version.toString(36)}`).join(',') ||
  '-';
