import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { readScripts } from '../../src/redis/scripts/contract.js';
import { generateTypes } from '../../src/redis/scripts/generate.js';
import { defaultKinds, defaultUpdateMask, kindBit } from '../../src/rules/update_kinds.js';
import { messageFlags, messageKinds } from '../../src/store/core/codec.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const lua = join(root, 'lua');
const luaFiles = readdirSync(lua, { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('.lua'),
);
const bodies = new Map(
  luaFiles.map((file) => [file, readFileSync(join(lua, file), 'utf8').split(/^\]\]$/m)[1] ?? '']),
);
const sources = (folder: string): string =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.gen.ts'))
    .map((file) => readFileSync(join(folder, file), 'utf8'))
    .join('\n');

test('the generated types of scripts are up to date', () => {
  expect(readFileSync(join(root, 'src/redis/scripts/scripts.gen.ts'), 'utf8')).toBe(generateTypes(lua));
});

test('every Lua script is called, and every shared Lua file is used', () => {
  const program = sources(join(root, 'src'));
  const scripts = readScripts(lua);
  expect([...scripts.keys()].filter((name) => !program.includes(`'${name}'`))).toEqual([]);
  const used = new Set([...scripts.values()].flatMap(({ shared }) => shared));
  const shared = luaFiles.filter((file) => file.startsWith('lib/')).map((file) => file.slice(4, -4));
  expect(shared.filter((name) => !used.has(name))).toEqual([]);
});

test('Lua scripts contain no literal numbers that belong in limits.ts', () => {
  // The number 1000 is allowed, because it converts seconds to milliseconds and because the age of a queue is checked
  // at every 1000th update.
  const allowed = new Set(['1000']);
  const spelled = [...bodies].flatMap(([file, body]) =>
    body.split('\n').flatMap((line) => {
      const code = line.replace(/--.*$/, '').replace(/'[^']*'/g, "''");
      return [...code.matchAll(/\b\d{3,}\b/g)].filter(([n]) => !allowed.has(n)).map(([n]) => `${file}: ${n}`);
    }),
  );
  // The allowed literal numbers. 144 is the first byte of a short msgpack array. 16777213 is a prime. The other numbers
  // are bits of update kinds, and their default set `defaultKinds`.
  const bits = [kindBit('inline_query'), kindBit('chosen_inline_result')];
  expect(spelled.sort()).toEqual([
    'control/write.lua: 144',
    'lib/consumer.lua: 16777213',
    `lib/draft.lua: ${kindBit('stopped_message_generation')}`,
    ...bits.map((bit) => `lib/inline.lua: ${bit}`),
    `lib/queue.lua: ${defaultKinds}`,
  ]);
  expect(bodies.get('lib/inline.lua')).toContain(
    `local INLINE_QUERY_BIT, CHOSEN_RESULT_BIT = ${bits.join(', ')}\n`,
  );
});

test('Lua represents every limit of the scripts exactly', () => {
  const named = new Set(
    [...bodies.values()].flatMap((body) => [...body.matchAll(/\bLIMITS\.(\w+)/g)].map((m) => m[1])),
  );
  expect(named.size).toBeGreaterThan(10);
  for (const name of named) expect(Number.isSafeInteger(limits[name as keyof typeof limits])).toBe(true);
});

describe('codec.ts and Lua use equal constants', () => {
  const message = bodies.get('lib/message.lua') ?? '';
  test('codec.ts and Lua use the same kinds and flags of messages', () => {
    expect(message).toContain(
      `local KIND_DELETED, KIND_TEXT, KIND_SERVICE, KIND_MEDIA, KIND_OBJECT = ${Object.values(messageKinds).join(', ')}`,
    );
    const { forwarded, inline } = messageFlags;
    expect(message).toContain(`local FLAG_FORWARDED, FLAG_INLINE = ${forwarded}, ${inline}`);
  });

  test('codec.ts and Lua use the same bits for kinds of updates', () => {
    const pushed = [...bodies.values()].flatMap((body) =>
      [...body.matchAll(/push_update\(q, \w+, version, ms, (\d+), '(\w+)'/g)].map((m) => [
        m[2],
        Number(m[1]),
      ]),
    );
    expect(pushed).toHaveLength(4);
    for (const [kind, bit] of pushed) expect(bit).toBe(kindBit(kind as 'message'));
    expect(bodies.get('lib/queue.lua')).toContain(
      `local DEFAULT_MASK, DEFAULT_KINDS = ${defaultUpdateMask}, ${defaultKinds}\n`,
    );
  });
});

test('Lua scripts take the time from Redis, never from an argument', () => {
  for (const script of readScripts(lua).values()) {
    expect(script.args.filter(({ name }) => /^(now|date|time)(_|$)/.test(name))).toEqual([]);
  }
});

test('every script that writes gets its request id from the shared function', () => {
  const store = readdirSync(join(root, 'src/store'), { encoding: 'utf8', recursive: true })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => [file, readFileSync(join(root, 'src/store', file), 'utf8')] as const);
  expect(store.length).toBeGreaterThan(50);
  const unique = /request\w* = uniqueText\(|(Keys|request)\([^;]*?, uniqueText\(\)/;
  expect(store.filter(([, text]) => unique.test(text)).map(([file]) => file)).toEqual([]);
  const spelled = [...bodies].filter(([, body]) => body.includes('request_id_ttl_ms')).map(([file]) => file);
  expect(spelled).toEqual([join('lib', 'request.lua')]);
});
