/** Tests which texts are read from the HTML of a page for a preview. Also tests malicious pages. */
import { describe, expect, test } from 'vitest';
import { cardOf } from '../../src/previews/card.js';
import { readPage } from '../../src/previews/charset.js';
import { readHead } from '../../src/previews/head.js';
import { previewLimits as limits } from '../../src/previews/limits.js';

const card = (html: string, url = 'https://example.org/a') => cardOf(url, readHead(html));
const titleOf = (html: string) => card(html)?.title;

test('a preview shows the texts that a page provides for previews, and the host of the page', () => {
  const html = `<!doctype html><html><head>
    <title>Plain title</title>
    <meta name="description" content="Plain description">
    <meta property="og:title" content="Best title">
    <meta property='og:description' content='Best &quot;description&quot;'>
    <meta property=og:site_name content=Site>
    </head><body>`;
  expect(card(html, 'https://example.org:8443/a')).toEqual({
    ...{ host: 'example.org:8443', title: 'Best title' },
    ...{ description: 'Best "description"', site_name: 'Site' },
  });
});

test('if a page provides no texts for previews, the preview shows the title and description of the page', () => {
  expect(card('<title>A &amp; B</title><META NAME=Description CONTENT="c">')).toEqual({
    ...{ host: 'example.org', title: 'A & B', description: 'c' },
  });
  expect(card('<meta name="twitter:title" content="t"><meta property="og:title" content=" ">')).toEqual({
    ...{ host: 'example.org', title: 't' },
  });
});

test.each([
  ['an empty page', ''],
  ['a page without a title', '<head><meta name="description" content="d"></head>'],
  ['a blank title', '<title> \n\u200b\u00a0&nbsp;</title>'],
  ['a title in the body', '<head></head><body><svg><title>icon</title></svg>'],
  ['a title in a comment', '<!-- <title>a</title> -->'],
  ['a title in a script', '<script>"<title>a</title>"</script>'],
  ['a title after the head', '</head><title>a</title>'],
])('%s has no preview', (_, html) => {
  expect(card(html)).toBeNull();
});

describe('page texts', () => {
  test.each([
    ['are on one line', 'a\n\tb  c\u2028d', 'a b c d'],
    ['have no markup', 'a<b>c</b>&lt;i&gt;', 'a<b>c</b><i>'],
    ['do not change the direction of other texts', '\u202egnp.exe\u2066\u200f', 'gnp.exe'],
    ['have no control characters', 'a\u0000\u0007\u009bb', 'a b'],
    ['have no half of a surrogate pair', '&#xd83d;a', '\ufffda'],
    ['contain no token', `x 123456:A${'a'.repeat(34)}`, 'x 123456:…'],
  ])('%s', (_, given, wanted) => {
    expect(titleOf(`<title>${given}</title>`)).toBe(wanted);
  });

  test('long texts are cut between code points', () => {
    const { preview_title_length_max: max } = limits;
    expect(titleOf(`<title>${'😀'.repeat(max)}</title>`)).toBe('😀'.repeat(max));
    expect(titleOf(`<title>${'😀'.repeat(max + 1)}</title>`)).toBe(`${'😀'.repeat(max - 1)}…`);
    const long = card(
      `<title>${'a'.repeat(200_000)}</title><meta name=description content="${'b'.repeat(90_000)}">`,
    );
    expect([...(long?.title ?? '')]).toHaveLength(max);
    expect([...(long?.description ?? '')]).toHaveLength(limits.preview_description_length_max);
  });

  test('if several elements contain a title, the first title is used', () => {
    expect(titleOf('<title>a</title><title>b</title>')).toBe('a');
    expect(titleOf('<meta property="og:title" content="a"><meta property="og:title" content="b">')).toBe('a');
    expect(titleOf('<meta property="og:title" property="x" content="a" content="b">')).toBe('a');
  });

  test('if a page ends too early, the preview uses the texts that were read so far', () => {
    expect(titleOf('<title>a</title><meta property="og:title" content="b')).toBe('a');
    expect(titleOf('<head><title>abc')).toBe('abc');
  });
});

describe('page encoding', () => {
  const windows1251 = Buffer.concat([
    Buffer.from('<title>'),
    Buffer.from([0xcf, 0xf0, 0xe8, 0xe2, 0xe5, 0xf2]),
    Buffer.from('</title>'),
  ]);
  const read = (bytes: Buffer, type = 'text/html') => readPage(bytes, type).title;
  const named = (meta: string) => Buffer.concat([Buffer.from(meta), windows1251]);

  test('the encoding of a page is taken from the Content-Type header, or else from the page itself', () => {
    expect(read(windows1251, 'text/html; charset="windows-1251"')).toBe('Привет');
    expect(read(named('<meta charset=windows-1251>'))).toBe('Привет');
    expect(read(named('<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">'))).toBe(
      'Привет',
    );
    expect(read(named('<meta charset=utf-8>'), 'text/html;charset=windows-1251')).toBe('Привет');
    expect(read(Buffer.from('<title>Привет</title>'))).toBe('Привет');
    expect(read(Buffer.from('\ufeff<title>a</title>', 'utf16le'), 'text/html; charset=utf-16le')).toBe('a');
  });

  test('a page with a wrong or unknown encoding still has a title', () => {
    expect(read(windows1251)).toBe('\ufffd'.repeat(6));
    expect(read(Buffer.from('<title>Привет</title>'), 'text/html; charset=nonsense')).toBe('Привет');
    expect(read(Buffer.from('<meta charset=utf-16><title>Привет</title>'))).toBe('Привет');
    expect(read(Buffer.from('<meta charset="__proto__"><title>a</title>'))).toBe('a');
  });

  test('the encoding of a page is found only if it is named at the beginning of the page', () => {
    expect(read(named(`<!--${' '.repeat(1_024)}--><meta charset=windows-1251>`))).toBe('\ufffd'.repeat(6));
  });
});
