/**
 * Parses a list of numbers and ranges such as `0-3, 7`, in any order. Returns null for malformed text and for numbers
 * of `bound` or more.
 */
export function parseRanges(texts: readonly string[], bound: number): number[] | null {
  const found = new Set<number>();
  for (const text of texts.flatMap((each) => each.split(',')).filter(Boolean)) {
    const [, first, last] = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(text) ?? [];
    if (first === undefined || Number(last ?? first) >= bound || Number(last ?? first) < Number(first))
      return null;
    for (let each = Number(first); each <= Number(last ?? first); each++) found.add(each);
  }
  return [...found].sort((a, b) => a - b);
}

export function rangesText(numbers: readonly number[]): string {
  const runs: Array<[number, number]> = [];
  for (const each of numbers) {
    const run = runs.at(-1);
    if (run !== undefined && run[1] === each - 1) run[1] = each;
    else runs.push([each, each]);
  }
  return runs.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(', ');
}
