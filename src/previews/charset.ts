/** Decodes a page with the encoding that the page names. */
import { TextDecoder } from 'node:util';
import { type HeadFields, readHead } from './head.js';

/** How many bytes at the beginning of a page are searched for the name of its encoding, as in browsers. */
const searched_bytes = 1_024;

const charsetIn = (contentType: string): string | undefined =>
  /charset\s*=\s*["']?([\w.:-]{1,40})/i.exec(contentType)?.[1];

function decoderOf(label: string | undefined): TextDecoder | undefined {
  try {
    return label === undefined ? undefined : new TextDecoder(label);
  } catch {
    return undefined;
  }
}

/** Returns the name of the encoding that the page itself contains. */
function labelIn(bytes: Buffer): string | undefined {
  const { charset, contentType } = readHead(bytes.toString('latin1', 0, searched_bytes));
  const named = charset ?? charsetIn(contentType ?? '');
  // A name that can be read as ASCII shows that the page is not in UTF-16, whatever the name says.
  return named !== undefined && /^utf-16/i.test(named) ? undefined : named;
}

/**
 * Reads the fields of a page. If the page names no encoding, or an unknown encoding, the encoding is UTF-8. Invalid
 * bytes become U+FFFD.
 */
export function readPage(bytes: Buffer, contentType: string): HeadFields {
  const decoder = decoderOf(charsetIn(contentType)) ?? decoderOf(labelIn(bytes)) ?? new TextDecoder();
  return readHead(decoder.decode(bytes));
}
