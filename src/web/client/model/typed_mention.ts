/** Finds a mention that the person has begun to type. */

const typedName = /(?:^|[\s([{"'«„“])@([\p{L}\p{N}_]{0,32})$/u;

/** Returns the typed letters between `@` and the caret. Returns undefined if the caret is not in a mention. */
export const typedMention = (text: string, caret: number): string | undefined =>
  typedName.exec(text.slice(Math.max(0, caret - 100), caret))?.[1];
