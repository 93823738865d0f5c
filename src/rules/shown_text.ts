/** Shortens texts and hides their spoilers, for places outside of the application, such as a lock screen. */

interface Marked {
  readonly type: string;
  /** The offset of the entity in the text. `offset` and `length` are in UTF-16 code units. */
  readonly offset: number;
  readonly length: number;
}

/**
 * Returns the first `max` code points of a text. If the text is longer, the last of these code points is an ellipsis.
 */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text;
  const points = [...text.slice(0, max * 2 + 2)];
  return points.length <= max ? text : `${points.slice(0, max - 1).join('')}…`;
}

/** Replaces the letters of spoilers, because a lock screen or a preview card may show the text. */
export function withoutSpoilers(text: string, entities: readonly Marked[] = []): string {
  let shown = text;
  for (const { type, offset, length } of entities) {
    if (type !== 'spoiler') continue;
    const hidden = shown.slice(offset, offset + length).replace(/\S/g, '▒');
    shown = shown.slice(0, offset) + hidden + shown.slice(offset + length);
  }
  return shown;
}
