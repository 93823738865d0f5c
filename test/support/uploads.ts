/** Sends uploads as raw bytes, so that a test controls exactly what is sent. */
import { request as nodeRequest } from 'node:http';
import type { Answer } from './service.js';

export interface Part {
  readonly head: string;
  readonly body: Buffer | string;
}

export async function post(
  url: string,
  parts: readonly Part[],
  { chunked = false, end = '\r\n', headers = {} as Readonly<Record<string, string>> } = {},
): Promise<Answer> {
  const pieces = parts.flatMap(({ head, body }) => [`--b\r\n${head}\r\n\r\n`, body, '\r\n']);
  const body = Buffer.concat([...pieces, `--b--${end}`].map((piece) => Buffer.from(piece)));
  return new Promise((resolve, reject) => {
    const call = nodeRequest(
      url,
      {
        method: 'POST',
        headers: {
          ...headers,
          'content-type': 'multipart/form-data; boundary=b',
          ...(chunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': body.length }),
        },
      },
      async (answer) =>
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers,
          body: JSON.parse(Buffer.concat(await answer.toArray()).toString()),
        }),
    );
    call.on('error', reject);
    if (chunked) for (let i = 0; i < body.length; i += 1_000) call.write(body.subarray(i, i + 1_000));
    call.end(chunked ? undefined : body);
  });
}

export const field = (name: string, value: string | number): Part => ({
  head: `Content-Disposition: form-data; name="${name}"`,
  body: String(value),
});
