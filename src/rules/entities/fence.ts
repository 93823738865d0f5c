/** Parses the opening line of a fenced code block, for both Markdown modes. */

const languageName = /[^\s`]*/y;

/**
 * Parses the text after the three opening backticks. If white space follows the first word, the word names the
 * language. The line break after the word or after the backticks is not part of the block.
 */
export function fenceStart(source: string, from: number): { language: string; contentStart: number } {
  languageName.lastIndex = from;
  languageName.test(source);
  const wordEnd = languageName.lastIndex;
  const named = wordEnd > from && wordEnd < source.length && source[wordEnd] !== '`';
  let contentStart = named ? wordEnd : from;
  if (source.startsWith('\r\n', contentStart)) contentStart += 2;
  else if (source[contentStart] === '\n' || source[contentStart] === '\r') contentStart += 1;
  return { language: named ? source.slice(from, wordEnd) : '', contentStart };
}
