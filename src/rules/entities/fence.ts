/** The opening line of a fenced block, which both Markdown modes share. */

const languageName = /[^\s`]*/y;

/**
 * Reads what follows the three backticks: a word that white space ends is the language, and one line break after it
 * (or after the backticks) is no part of the block.
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
