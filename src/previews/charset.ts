/** Decodes a page with the encoding that it names. */
import { TextDecoder } from 'node:util';
import { type HeadFields, readHead } from './head.js';

/**
 * How many bytes at the beginning of a page are searched for the name of its encoding. Browsers search the same number.
 */
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

/** Returns the name of the encoding that the page's HTML declares. */
function labelIn(bytes: Buffer): string | undefined {
  const { charset, contentType } = readHead(bytes.toString('latin1', 0, searched_bytes));
  const named = charset ?? charsetIn(contentType ?? '');
  // Ignores the name UTF-16. The page must have another encoding, because this name was found by reading single bytes.
  return named !== undefined && /^utf-16/i.test(named) ? undefined : named;
}

/** Reads a page's fields. If the page names no known encoding, reads it as UTF-8. Invalid bytes become U+FFFD. */
export function readPage(bytes: Buffer, contentType: string): HeadFields {
  const decoder = decoderOf(charsetIn(contentType)) ?? decoderOf(labelIn(bytes)) ?? new TextDecoder();
  return readHead(decoder.decode(bytes));
}
