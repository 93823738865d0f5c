import { describe, expect, test } from 'vitest';
import { linkedPage, pageUrl } from '../../src/rules/page_url.js';

const token = `123456:A${'a'.repeat(34)}`;

describe('pageUrl', () => {
  test.each([
    ['https://example.org/a?b=1#part', 'https://example.org/a?b=1'],
    ['http://example.org/a', 'https://example.org/a'],
    ['HTTPS://EXAMPLE.org', 'https://example.org/'],
    ['https://example.org:8443/', 'https://example.org:8443/'],
    ['https://пример.рф/', 'https://xn--e1afmkfd.xn--p1ai/'],
  ])('pageUrl turns %s into %s', (given, wanted) => {
    expect(pageUrl(given)).toBe(wanted);
  });

  test.each([
    ['http://example.org:8080/'],
    ['ftp://example.org/'],
    ['javascript:alert(1)'],
    ['https://name:secret@example.org/'],
    ['https://name@example.org/'],
    [`https://example.org/bot${token}/getMe`],
    [`https://example.org/${'a'.repeat(2_048)}`],
    // This address is too long only after it is percent-encoded.
    [`https://example.org/${'я'.repeat(1_000)}`],
    ['https://'],
    [''],
  ])('pageUrl refuses %s', (given) => {
    expect(pageUrl(given)).toBeUndefined();
  });

  test('pageUrl resolves a redirect target against the address of the page that redirects', () => {
    expect(pageUrl('../b', 'https://example.org/x/a')).toBe('https://example.org/b');
    expect(pageUrl('//other.example/b', 'https://example.org/x/a')).toBe('https://other.example/b');
    expect(pageUrl('http://other.example/b', 'https://example.org/')).toBe('https://other.example/b');
    expect(pageUrl('file:///etc/passwd', 'https://example.org/')).toBeUndefined();
  });
});

describe('linkedPage', () => {
  const text = 'mail a@b.example, see ftp://x.example and example.org/a or this';
  const of = (type: string, part: string, more = {}) => ({
    ...{ type, offset: text.indexOf(part), length: part.length },
    ...more,
  });
  const entities = [
    of('email', 'a@b.example'),
    of('url', 'ftp://x.example'),
    of('url', 'example.org/a'),
    of('text_link', 'this', { url: 'https://hidden.example/' }),
  ];

  test('linkedPage returns the first link whose page can have a preview', () => {
    expect(linkedPage({ text, entities })).toBe('https://example.org/a');
    expect(linkedPage({ text, entities: entities.slice(3) })).toBe('https://hidden.example/');
    expect(linkedPage({ text, entities: entities.slice(0, 2) })).toBeUndefined();
    expect(linkedPage({ text: 'example.org' })).toBeUndefined();
  });

  test('the link preview options of a message choose another page for the preview, or turn it off', () => {
    const url = 'other.example';
    expect(linkedPage({ text, entities, preview: { url } })).toBe('https://other.example/');
    expect(linkedPage({ text, entities, preview: { url: 'ftp://x.example' } })).toBeUndefined();
    expect(linkedPage({ text, entities, preview: { url, is_disabled: true } })).toBeUndefined();
  });
});
