/** Parses the opening line of a fenced code block, for both Markdown modes. */

const languageName = /[^\s`]*/y;

/**
 * Parses the text after the three backticks. A word that is followed by white space names the language. One line break
 * after that word or after the backticks is not part of the block.
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
