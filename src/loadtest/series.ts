/**
 * Defines the requests of a load: either the same call again and again, or calls that are filled with ids from rows.
 * Both load tools use this format.
 */

export interface Call {
  readonly verb: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly token?: string;
  readonly body?: string;
}

/**
 * A series of requests. Path, token and body may contain placeholders: `{1}`, `{2}`, … are the columns of a row,
 * `{pass}` is how often all rows have been used, and `{salt}` is unique to the load.
 */
export interface Series {
  readonly origin: string;
  /**
   * The calls of the series. Without `byRow`, the first pass over the rows uses the first call, the second pass uses
   * the second call, and so on.
   */
  readonly calls: readonly Call[];
  /** Whether the first column of each row is the index of the call to use. */
  readonly byRow?: boolean;
  /**
   * The rows of ids. Requests take them in order and start again after the last row. If all requests are the same,
   * there is a single empty row.
   */
  readonly rows: readonly (readonly string[])[];
}

/**
 * The parts of a text with placeholders: literal texts, and the indices of columns. Index 0 stands for how often all
 * rows have been used.
 */
export type Pieces = ReadonlyArray<string | number>;

export interface Template {
  readonly verb: Call['verb'];
  readonly path: Pieces;
  readonly token: Pieces | undefined;
  readonly body: Pieces | undefined;
}

export const once: Series['rows'] = [[]];

const placeholder = /\{(\d+|pass)\}/;

function piecesOf(text: string, salt: string): Pieces {
  return text
    .replaceAll('{salt}', salt)
    .split(placeholder)
    .map((part, i) => (i % 2 === 0 ? part : part === 'pass' ? 0 : Number(part)))
    .filter((part) => part !== '');
}

export const isFixed = ({
  calls,
  rows,
}: {
  readonly calls: readonly object[];
  readonly rows: Series['rows'];
}): boolean => calls.length === 1 && rows.length === 1;

export function templatesOf({ calls }: Series, salt: string): Template[] {
  const of = (text: string | undefined) => (text === undefined ? undefined : piecesOf(text, salt));
  return calls.map(({ verb, path, token, body }) => ({
    verb,
    path: piecesOf(path, salt),
    token: of(token),
    body: of(body),
  }));
}

export function fillIn(pieces: Pieces, row: readonly string[], pass: number): string {
  let text = '';
  for (const piece of pieces) {
    if (typeof piece === 'string') text += piece;
    else text += piece === 0 ? pass : (row[piece - 1] as string);
  }
  return text;
}

export function firstCall(series: Series, salt: string): Call {
  const [{ verb, path, token, body }] = templatesOf(series, salt) as [Template];
  const of = (pieces: Pieces) => fillIn(pieces, series.rows[0] ?? [], 0);
  return {
    verb,
    path: of(path),
    ...(token === undefined ? {} : { token: of(token) }),
    ...(body === undefined ? {} : { body: of(body) }),
  };
}
