/** Tests properties of the store’s encodings: message records, partitions, secrets, cursors and names of chats. */
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { clusterSlot } from '../../src/redis/slots.js';
import {
  type MessageKind,
  type MessageRecord,
  mediaTypes,
  messageKinds,
  messageVersion,
  pack,
  packMessage,
  packMessageTail,
  unpack,
  unpackMessage,
} from '../../src/store/core/codec.js';
import { cursorText, parseCursor } from '../../src/store/core/cursors.js';
import { chatText, directChat, parseChat, sharedChat } from '../../src/store/core/keys.js';
import { layPartitions } from '../../src/store/core/partitions.js';
import { createSecrets } from '../../src/store/core/secrets.js';

const versionMax = limits.versions_per_incarnation * limits.incarnations_max;
const id = fc.integer({ min: 1, max: limits.id_max - 1 });
const words = fc.string({ unit: 'grapheme', maxLength: 300 });
const versions = fc.oneof(
  fc.integer({ min: 1, max: versionMax }),
  fc.constantFrom(2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 40, 10 ** 14, 91 * 2 ** 40 + 1, versionMax - 1),
);
const keyboard = fc.record({
  inline_keyboard: fc.array(fc.array(fc.record({ text: words, callback_data: words }), { maxLength: 3 }), {
    maxLength: 3,
  }),
});
const media = fc.record({
  type: fc.constantFrom(...mediaTypes),
  id: words,
  unique: words,
  size: fc.integer({ min: 0, max: 2 ** 31 }),
});
// Turns -0 into 0, because packing also does this.
const object = fc.record({ type: words, latitude: fc.double({ noNaN: true }).map((n) => n + 0) });
const content = (kind: number) => {
  if (kind === messageKinds.object) return fc.record({ object });
  return kind === messageKinds.media ? fc.record({ text: words, media }) : fc.record({ text: words });
};
const messages: fc.Arbitrary<MessageRecord> = fc
  .constantFrom(...Object.values(messageKinds))
  .chain((kind) => messagesOf(kind));
const messagesOf = (kind: MessageKind): fc.Arbitrary<MessageRecord> =>
  fc.record({
    version: versions,
    date: fc.integer({ min: 0, max: 2 ** 33 }),
    editedAt: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 2 ** 42 })),
    sender: id,
    kind: fc.constant(kind),
    flags: fc.integer({ min: 0, max: 7 }),
    content: content(kind),
    markup: fc.oneof(fc.constant(null), keyboard),
    origin: fc.oneof(fc.constant({}), fc.record({ reply: id, from: fc.record({ id, n: words }) })),
    post: fc.oneof(fc.constant(0), id),
  });

describe('message records are encoded without loss', () => {
  let redis: Redis;
  beforeAll(() => {
    redis = new Redis(inject('redisUrl'), { protocol: 2, disableClientInfo: true });
  });
  afterAll(() => redis.disconnect());

  test('a packed message record is unpacked unchanged', () => {
    fc.assert(
      fc.property(messages, (message) => {
        const bytes = packMessage(message);
        expect(unpackMessage(bytes)).toEqual(message);
        expect(messageVersion(bytes)).toBe(message.version);
      }),
    );
  });

  test('a record with a header written by Lua is unpacked like any other record', async () => {
    // Builds the header as lib/message.lua does, both for a new record and for a record whose header was unpacked and
    // packed again.
    const source = `
      local tail, version, date = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
      local made = '\\153' .. cmsgpack.pack(1, version, date) .. tail
      local at, header = cmsgpack.unpack_one(made)
      local rest = at < 0 and '' or made:sub(at + 1)
      return {made, cmsgpack.pack(header) .. rest, ('%.0f'):format(header[2]), ('%.0f'):format(header[5])}`;
    await fc.assert(
      fc.asyncProperty(messages, async (given) => {
        const message = { ...given, editedAt: 0, post: 0 };
        const reply = await redis.callBuffer(
          'EVAL',
          source,
          0,
          packMessageTail(message),
          message.version,
          message.date,
        );
        const [made, rewritten, version, sender] = reply as [Buffer, Buffer, Buffer, Buffer];
        expect(unpackMessage(made)).toEqual(message);
        expect(unpackMessage(rewritten)).toEqual(message);
        expect([Number(version), Number(sender)]).toEqual([message.version, message.sender]);
      }),
      { numRuns: 200 },
    );
  });

  test('Lua packs numbers of every size without loss of precision', async () => {
    await fc.assert(
      fc.asyncProperty(versions, async (version) => {
        const bytes = await redis.callBuffer('EVAL', 'return cmsgpack.pack(tonumber(ARGV[1]))', 0, version);
        expect(unpack(bytes as Buffer)).toBe(version);
        const text = await redis.eval("return ('%.0f'):format(cmsgpack.unpack(ARGV[1]))", 0, pack(version));
        expect(text).toBe(String(version));
      }),
    );
  });
});

describe('every id belongs to one partition', () => {
  const counts = fc.integer({ min: 1, max: limits.partitions_max });

  test('each partition has its own hash tag, which is in the slot range of the partition', () => {
    fc.assert(
      fc.property(counts, (count) => {
        const { tag } = layPartitions(count);
        const tags = Array.from({ length: count }, (_, partition) => tag(partition));
        expect(new Set(tags).size).toBe(count);
        for (const [partition, text] of tags.entries()) {
          const slot = clusterSlot(text.slice(1, -1));
          expect(Math.floor((slot * count) / 16_384)).toBe(partition);
        }
      }),
      { numRuns: 20 },
    );
  });

  test('the computed slots equal the slots in the Redis Cluster specification', () => {
    expect(clusterSlot('123456789')).toBe(0x31c3);
    expect(clusterSlot('foo')).toBe(12_182);
  });

  test('every node computes the same partition for an id', () => {
    fc.assert(
      fc.property(counts, fc.array(id, { minLength: 20, maxLength: 20 }), (count, ids) => {
        const [here, there] = [layPartitions(count), layPartitions(count)];
        for (const value of ids) {
          const own = here.of(value);
          expect(own).toBeGreaterThanOrEqual(0);
          expect(own).toBeLessThan(count);
          expect(there.of(value)).toBe(own);
          expect(there.of(-value)).toBe(own);
        }
      }),
      { numRuns: 10 },
    );
  });

  test.each([
    ['in a row', 1],
    ['even', 2],
    ['apart by a power of two', 1024],
    ['apart by 2 ** 33', 2 ** 33],
  ])('ids %s are spread evenly over the partitions', (_, step) => {
    const { of } = layPartitions(64);
    const found = new Array<number>(64).fill(0);
    const ids = Math.min(6_400, Math.floor(limits.id_max / step) - 1);
    for (let i = 0; i < ids; i++) found[of(100_001 + i * step)]!++;
    if (ids >= 6_400) {
      expect(Math.min(...found)).toBeGreaterThan(40);
      expect(Math.max(...found)).toBeLessThan(200);
    } else expect(Math.max(...found)).toBeLessThan(ids / 16);
  });
});

describe('secrets are encrypted', () => {
  const ring = (...names: string[]) => names.map((name) => ({ id: name, key: randomBytes(32) }));
  const pepper = 'p'.repeat(32);

  test('an encrypted secret can be decrypted only for its owner', () => {
    const secrets = createSecrets([pepper], ring('a'));
    fc.assert(
      fc.property(words, id, id, (text, owner, other) => {
        const box = secrets.seal(text, `bot:${owner}`);
        expect(secrets.open(box, `bot:${owner}`)).toBe(text);
        expect(secrets.seal(text, `bot:${owner}`).equals(box)).toBe(false);
        if (text.length > 4) expect(box.includes(text)).toBe(false);
        if (other !== owner) expect(() => secrets.open(box, `bot:${other}`)).toThrow();
      }),
    );
  });

  test('an encrypted secret is refused if any byte was changed', () => {
    const secrets = createSecrets([pepper], ring('a'));
    const box = secrets.seal('a token', 'bot:1');
    for (let at = 0; at < box.length; at++) {
      const bent = Buffer.from(box);
      bent[at] = (bent[at] as number) ^ 1;
      expect(() => secrets.open(bent, 'bot:1')).toThrow();
    }
  });

  test('the first key of a ring encrypts, and every key of the ring decrypts', () => {
    const [older, newer] = ring('old', 'new') as [{ id: string; key: Buffer }, { id: string; key: Buffer }];
    const box = createSecrets([pepper], [older]).seal('x', 'bot:1');
    const both = createSecrets([pepper], [newer, older]);
    expect(both.open(box, 'bot:1')).toBe('x');
    expect(() => createSecrets([pepper], [newer]).open(box, 'bot:1')).toThrow(/TOKEN_KEYS lacks the key/);
    expect(() => createSecrets([pepper], ring('old')).open(box, 'bot:1')).toThrow();
    expect(createSecrets([pepper], [newer]).open(both.seal('y', 'bot:1'), 'bot:1')).toBe('y');
  });

  test('another pepper gives other look-up values and other check values', () => {
    const one = createSecrets([pepper], ring('a'));
    const two = createSecrets(['q'.repeat(32)], ring('a'));
    expect(one.lookup('t').equals(two.lookup('t'))).toBe(false);
    expect(one.lookup('t')).toHaveLength(32);
    expect(one.checks.peppers).not.toEqual(two.checks.peppers);
    expect(one.checks.keys[0]?.check).not.toBe(two.checks.keys[0]?.check);
    expect(JSON.stringify(one.checks)).not.toContain(pepper);
  });
});

describe('cursors and chat names are encoded without loss', () => {
  test('an encoded cursor decodes to the original cursor', () => {
    const cursors = fc.uniqueArray(fc.tuple(fc.integer({ min: 0, max: 63 }), versions), {
      selector: ([p]) => p,
    });
    fc.assert(
      fc.property(cursors, (entries) => {
        const text = cursorText(new Map(entries));
        expect(text).not.toBe('');
        expect([...parseCursor(text, 64)]).toEqual(entries);
      }),
    );
  });

  test('any text given as a cursor is either accepted or refused, without an internal error', () => {
    fc.assert(
      fc.property(fc.oneof(words, fc.stringMatching(/^[0-9a-z.,]{0,40}$/)), (text) => {
        for (const [partition, version] of parseCursor(text, 64)) {
          expect(partition >= 0 && partition < 64 && version >= 0 && version < 2 ** 63).toBe(true);
        }
      }),
    );
  });

  test('decoding the text form of a chat returns the original chat', () => {
    fc.assert(
      fc.property(id, id, (one, other) => {
        expect(parseChat(chatText(directChat(one, other)))).toEqual(directChat(one, other));
        expect(parseChat(chatText(sharedChat(-one)))).toEqual(sharedChat(-one));
      }),
    );
  });
});
