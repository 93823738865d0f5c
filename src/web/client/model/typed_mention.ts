/** Finds the beginning of a mention before the caret. */

const typedName = /(?:^|[\s([{"'«„“])@([\p{L}\p{N}_]{0,32})$/u;

/** Returns the letters of the name before the caret, without `@`. Returns undefined if the caret is elsewhere. */
export const typedMention = (text: string, caret: number): string | undefined =>
  typedName.exec(text.slice(Math.max(0, caret - 100), caret))?.[1];
