/**
 * Tests the texts of the application. Every language has a translation of all texts, and the texts for errors match the
 * errors of the service.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { catalogue } from '../../src/errors.js';
import { reasons } from '../../src/web/client/reasons.js';
import { en as first } from '../../src/web/client/words/en.js';
import { words as hy } from '../../src/web/client/words/hy.js';
import { words as kk } from '../../src/web/client/words/kk.js';
import { later } from '../../src/web/client/words/later.js';
import { words as ru } from '../../src/web/client/words/ru.js';
import { words as tg } from '../../src/web/client/words/tg.js';
import { words as tt } from '../../src/web/client/words/tt.js';
import { words as uz } from '../../src/web/client/words/uz.js';

const en = { ...first, ...later };

type Key = keyof typeof en;

const all = { en, ru, uz, tg, hy, tt, kk };
const keys = Object.keys(en) as Key[];
const groups = keys.filter((key) => key.startsWith('emoji_'));

/** `@name` and brand names are written in the same way in every script. */
const letters = (text: string) =>
  text.replace(/\{\w+\}|Petrel|grammY|PNG|JPEG|WebP|OK|bot\b/g, '').replace(/[^\p{Letter}]/gu, '');

const scripts = {
  en: /^[\p{Script=Latin}]*$/u,
  // A Russian text must not contain letters that only other languages use, such as Ukrainian.
  ru: /^[а-яё]*$/iu,
  uz: /^[a-zʻʼ]*$/iu,
  tg: /^[а-яёғӣқӯҳҷ]*$/iu,
  hy: /^[\p{Script=Armenian}]*$/u,
  tt: /^[а-яёәөүҗңһ]*$/iu,
  kk: /^[а-яёәғқңөұүһі]*$/iu,
};

const holes = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(([hole]) => hole).sort();

test.each(Object.entries(all))(
  '%s has every text, in the script of the language, with the same placeholders',
  (code, words) => {
    expect(Object.keys(words).sort()).toEqual(keys.toSorted());
    for (const key of keys) {
      const said = words[key];
      expect(said.trim(), key).not.toBe('');
      expect(holes(said), key).toEqual(holes(en[key]));
      expect(letters(said), `${key}: ${said}`).toMatch(scripts[code as keyof typeof scripts]);
    }
  },
);

/** Two languages may share a loanword, but never a whole sentence. */
test('no text of one language occurs in another language', () => {
  const languages = Object.entries(all);
  const alike = languages.flatMap(([one, words], i) =>
    languages.slice(i + 1).flatMap(([other, others]) =>
      keys
        .filter((key) => words[key] === others[key] && letters(words[key]) !== '')
        .filter((key) => groups.includes(key) || words[key].includes(' '))
        .map((key) => `${one} and ${other}: ${key}`),
    ),
  );
  expect(alike).toEqual([]);
});

test('every error that the application translates is an error of the service', () => {
  const kind = /^(?:Bad Request|Forbidden|Not Found|Conflict|Too Many Requests): /;
  const said = Object.values(catalogue).map(({ text }) => text.replace(kind, '').replace(/\{\w+\}/g, '{}'));
  for (const text of Object.keys(reasons)) expect(said).toContain(text.replace(/\{\w+\}/g, '{}'));
});

/** Leaves out `reasons.ts`, because only the pages that load `later.ts` show its error texts. */
const client = fileURLToPath(new URL('../../src/web/client', import.meta.url));
const sources = new Map(
  readdirSync(client, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file) && !/^(words|docs|ops|post)\/|^reasons/.test(file))
    .map((file) => [file, readFileSync(join(client, file), 'utf8')]),
);

/** Adds a file, and every file that it imports directly or indirectly, to `loaded`. */
function addLoaded(file: string, loaded: Set<string>): Set<string> {
  if (loaded.has(file)) return loaded;
  loaded.add(file);
  for (const [, target = ''] of (sources.get(file) ?? '').matchAll(/^(?:import|\}).*'(\..*)\.js';$/gm)) {
    const path = normalize(join(dirname(file), target));
    addLoaded(sources.has(`${path}.tsx`) ? `${path}.tsx` : `${path}.ts`, loaded);
  }
  return loaded;
}

test('the texts of `later.ts` are loaded with each page that shows them, and not with the first page', () => {
  expect(addLoaded('main.tsx', new Set())).not.toContain('words/later.ts');
  const withBots = addLoaded('bots/bots.tsx', new Set());
  for (const [file, text] of sources) {
    const named = Object.keys(later).filter((key) => text.includes(`'${key}'`));
    if (named.length === 0 || withBots.has(file) || file === 'bots/replays.tsx') continue;
    expect([...addLoaded(file, new Set())], `${file} shows ${named}`).toContain('words/later.ts');
  }
  expect(withBots).toContain('words/later.ts');
});
