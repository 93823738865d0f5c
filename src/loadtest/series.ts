/** The requests of a load: one repeated call, or calls filled with rows of ids. Both load tools read this form. */

export interface Call {
  readonly verb: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  /** Bearer token */
  readonly token?: string;
  /** JSON */
  readonly body?: string;
}

/**
 * Placeholders in path, token and body: `{1}`, `{2}`, … are the columns of a row, `{pass}` is how often all rows were
 * used, `{salt}` is a text unique to the load.
 */
export interface Series {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Each pass over the rows uses the next of these calls. */
  readonly calls: readonly Call[];
  /** Instead, the first column of each row is the index of its call. */
  readonly byRow?: boolean;
  /** Used in order, and repeated. One row without columns when all requests are the same. */
  readonly rows: readonly (readonly string[])[];
}

/** Literal texts and column numbers between them; 0 is the pass. */
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

/** Whether all requests are the same. */
export const isFixed = ({
  calls,
  rows,
}: {
  readonly calls: readonly object[];
  readonly rows: Series['rows'];
}): boolean => calls.length === 1 && rows.length === 1;

/** The calls of a series, prepared for one load. */
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

/** The first call of a series. */
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
