import fc from 'fast-check';
import { ReplyError } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { OwnDecoder, Replies } from '../../src/redis/replies.js';

type Decoder = new (options: ConstructorParameters<typeof OwnDecoder>[0]) => { write(chunk: Buffer): void };

/**
 * Passes a stream to a decoder in pieces, and returns the decoded replies. Replaces errors with plain objects, because
 * each decoder has its own error class.
 */
function decoded(Kind: Decoder, chunks: readonly Buffer[]): unknown[] {
  const received: unknown[] = [];
  const plain = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(plain);
    return value instanceof Error ? { error: value.message, known: value instanceof ReplyError } : value;
  };
  const decoder = new Kind({
    onReply: (reply) => received.push(plain(reply)),
    onErrorReply: (error) => received.push(['refused', plain(error)]),
    onPush: (push) => received.push(['pushed', plain(push)]),
    getTypeMapping: () => ({ 43: Buffer, 36: Buffer, 37: Array }),
  });
  for (const chunk of chunks) decoder.write(chunk);
  return received;
}

const line = fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => text.replaceAll(/[\r\n]/g, ' '));
const bulk = fc
  .oneof(fc.uint8Array({ maxLength: 40 }), fc.uint8Array({ minLength: 300, maxLength: 400 }))
  .map((bytes) => Buffer.concat([Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')]));
const simple = fc.oneof(
  bulk,
  line.map((text) => Buffer.from(`+${text}\r\n`)),
  // Near 2^53, the decoder of ioredis returns a value that is off by one.
  fc
    .maxSafeInteger()
    .map((n) => Math.trunc(n / 2))
    .map((n) => Buffer.from(`:${n}\r\n`)),
  fc.constant(Buffer.from('$-1\r\n')),
);
const refusal = line.map((text) => Buffer.from(`-ERR ${text}\r\n`));
const { reply } = fc.letrec<{ reply: Buffer; array: Buffer }>((tie) => ({
  array: fc
    .array(tie('reply'), { maxLength: 5 })
    .map((items) => Buffer.concat([Buffer.from(`*${items.length}\r\n`), ...items])),
  reply: fc.oneof({ depthSize: 'small' }, simple, refusal, tie('array')),
}));

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...places.map((place) => Math.floor(place * bytes.length)), bytes.length].sort(
    (a, b) => a - b,
  );
  return ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end)).filter((chunk) => chunk.length > 0);
}
const places = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 8 });

describe('the decoder parses Redis replies', () => {
  test('the decoder and ioredis decode replies alike, wherever the stream is cut', () => {
    fc.assert(
      fc.property(fc.array(reply, { minLength: 1, maxLength: 6 }), places, (replies, at) => {
        const chunks = cut(Buffer.concat(replies), at);
        expect(decoded(Replies, chunks)).toEqual(decoded(OwnDecoder, chunks));
      }),
      { numRuns: 300 },
    );
  });

  test('the decoder accepts an error reply that is cut after its first byte', () => {
    const chunks = [Buffer.from('-'), Buffer.from('ERR no\r\n:1\r\n')];
    expect(decoded(Replies, chunks)).toEqual(decoded(OwnDecoder, chunks));
  });

  test("ioredis can use the decoder's replies on a connection that starts in RESP3", () => {
    fc.assert(
      fc.property(fc.array(refusal, { maxLength: 2 }), bulk, places, (refusals, value, at) => {
        const opening = Buffer.from('%1\r\n+proto\r\n:3\r\n');
        const push = Buffer.concat([Buffer.from('>2\r\n+message\r\n'), value]);
        const chunks = [...refusals, ...cut(Buffer.concat([opening, push, value]), at)];
        const received = decoded(Replies, chunks);
        expect(received).toEqual(decoded(OwnDecoder, chunks));
        expect(received).toHaveLength(refusals.length + 3);
      }),
    );
  });

  test('a malformed reply causes an error', () => {
    expect(() => decoded(Replies, [Buffer.from('+OK\r\n'), Buffer.from('?\r\n')])).toThrow('Protocol error');
  });
});
