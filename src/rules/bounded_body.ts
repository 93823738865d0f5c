/**
 * Reads the body of an HTTP response as text. Throws `the <name> is too large` as soon as the body exceeds `bytesMax`.
 * `body` is null for a response without a body.
 */
export async function readBounded(
  body: AsyncIterable<Uint8Array> | null,
  bytesMax: number,
  name: string,
): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new Error(`the ${name} is too large`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
