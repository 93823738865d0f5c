/** Encodes a call's parameters in every way that the interface allows. */

export type Given = Readonly<Record<string, unknown>>;

export interface Upload {
  readonly bytes: Buffer;
  readonly name: string;
}

export const encodings = ['query by GET', 'query by POST', 'JSON', 'a form', 'multipart'] as const;
export type Encoding = (typeof encodings)[number];

export interface Encoded {
  readonly verb: 'GET' | 'POST';
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | FormData;
}

/** Converts a parameter to the text for a query or a form. */
export const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

function asForm(params: Given): URLSearchParams {
  return new URLSearchParams(
    Object.entries(params).map(([name, value]): [string, string] => [name, asText(value)]),
  );
}

function asMultipart(params: Given, files: Readonly<Record<string, Upload>>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(params)) form.append(name, asText(value));
  for (const [name, { bytes, name: filename }] of Object.entries(files))
    form.append(name, new Blob([new Uint8Array(bytes)]), filename);
  return form;
}

/** Encodes a call. A call with files must use multipart. */
export function encode(
  params: Given,
  encoding: Encoding,
  files: Readonly<Record<string, Upload>> = {},
): Encoded {
  switch (encoding) {
    case 'query by GET':
      return { verb: 'GET', query: `?${asForm(params)}`, headers: {} };
    case 'query by POST':
      return { verb: 'POST', query: `?${asForm(params)}`, headers: {} };
    case 'a form':
      return {
        verb: 'POST',
        query: '',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: `${asForm(params)}`,
      };
    case 'multipart':
      return { verb: 'POST', query: '', headers: {}, body: asMultipart(params, files) };
    case 'JSON':
      return {
        verb: 'POST',
        query: '',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(params),
      };
  }
}
