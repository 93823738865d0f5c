/** Writes tables into the documents. In a document, a table is between `<!-- name -->` and `<!-- /name -->`. */

/** Returns a table in Markdown. */
export const table = (head, rows) =>
  [head, head.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n');

/** Returns a document with its table replaced. Throws if a marker is missing. */
export function withTable(text, name, made) {
  const pattern = new RegExp(`(<!-- ${name} -->\n)[\\s\\S]*?(<!-- /${name} -->)`);
  if (!pattern.test(text)) throw new Error(`there are no markers for the table ${name}`);
  return text.replace(pattern, (_, begin, end) => `${begin}\n${made}\n\n${end}`);
}
