/** Writes tables into documents. A document marks the place of a table with `<!-- name -->` and `<!-- /name -->`. */

export const table = (head, rows) =>
  [head, head.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n');

/** Returns a document with one table replaced. Throws if a marker is missing. */
export function withTable(text, name, made) {
  const pattern = new RegExp(`(<!-- ${name} -->\n)[\\s\\S]*?(<!-- /${name} -->)`);
  if (!pattern.test(text)) throw new Error(`there are no markers for the table ${name}`);
  return text.replace(pattern, (_, begin, end) => `${begin}\n${made}\n\n${end}`);
}
