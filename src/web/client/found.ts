/** Finds the words of a search query in a text, to highlight them. Compares texts as the service does. */

export interface Piece {
  readonly text: string;
  readonly isFound: boolean;
}

/**
 * Returns the text in lower case and with the same length, so that a position in the result is also valid in the given
 * text.
 */
const folded = (text: string): string => {
  const lower = text.toLowerCase().replaceAll('ς', 'σ');
  if (lower.length === text.length) return lower;
  return [...text]
    .map((char) => (char.toLowerCase().length === char.length ? char.toLowerCase() : char))
    .join('');
};

export const wordsOf = (query: string): string[] => [
  ...new Set(query.split(/\s+/u).filter(Boolean).map(folded)),
];

/** The maximum lengths of the text before the first match and of the whole snippet, in UTF-16 code units. */
const before_max = 24;
const snippet_max = 160;

/** Divides a text into pieces that match a word and pieces that match none. Overlapping matches become one piece. */
export function piecesOf(text: string, words: readonly string[]): Piece[] {
  const lower = folded(text);
  const isFound = new Uint8Array(text.length);
  for (const word of words)
    for (let at = lower.indexOf(word); word !== '' && at >= 0; at = lower.indexOf(word, at + word.length))
      isFound.fill(1, at, at + word.length);
  const pieces: Piece[] = [];
  for (let from = 0; from < text.length; ) {
    let to = from + 1;
    while (to < text.length && isFound[to] === isFound[from]) to++;
    pieces.push({ text: text.slice(from, to), isFound: isFound[from] === 1 });
    from = to;
  }
  return pieces;
}

/** Returns a snippet: the part of a text around the first match, on one line. */
export function snippetOf(text: string, words: readonly string[]): Piece[] {
  const line = text.replace(/\s+/gu, ' ').trim();
  const lower = folded(line);
  const places = words.map((word) => lower.indexOf(word)).filter((at) => at >= 0);
  const first = places.length === 0 ? 0 : Math.min(...places);
  let from = first <= before_max ? 0 : first - before_max;
  // Moves the start of the snippet back if it is in the middle of a surrogate pair.
  if (from > 0 && /[\udc00-\udfff]/.test(line[from] as string)) from--;
  const cut = line.slice(from, from + snippet_max).replace(/[\ud800-\udbff]$/, '');
  return piecesOf(`${from > 0 ? '…' : ''}${cut}${from + cut.length < line.length ? '…' : ''}`, words);
}
