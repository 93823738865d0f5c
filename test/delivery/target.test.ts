import { describe, expect, test } from 'vitest';
import { readTarget } from '../../src/delivery/outbound/target.js';
import { ApiError } from '../../src/errors.js';
import { limits } from '../../src/limits.js';

const refusalOf = (url: string): string => {
  try {
    return `accepted with host ${readTarget(url).host}`;
  } catch (error) {
    return error instanceof ApiError ? error.message : String(error);
  }
};

test('a webhook URL is split into its parts', () => {
  expect(readTarget(' https://Bot.Example:8443/hook/a%20b?x=1&y=/#part \n')).toEqual({
    url: 'https://Bot.Example:8443/hook/a%20b?x=1&y=/#part',
    origin: 'https://bot.example:8443',
    host: 'bot.example',
    port: 8443,
    path: '/hook/a%20b?x=1&y=/',
    authorization: undefined,
  });
});

describe('the host of a webhook URL is parsed', () => {
  test.each<[url: string, host: string, origin: string]>([
    ['https://example.com', 'example.com', 'https://example.com'],
    ['https://example.com:443/', 'example.com', 'https://example.com'],
    ['https://example.com./', 'example.com', 'https://example.com'],
    ['HTTPS://EXAMPLE.com', 'example.com', 'https://example.com'],
    ['https:example.com', 'example.com', 'https://example.com'],
    ['https:\\\\example.com\\hook', 'example.com', 'https://example.com'],
    ['https://bücher.example', 'xn--bcher-kva.example', 'https://xn--bcher-kva.example'],
    ['https://xn--bcher-kva.example', 'xn--bcher-kva.example', 'https://xn--bcher-kva.example'],
    ['https://example。com', 'example.com', 'https://example.com'],
    ['https://exa\u00admple.com', 'example.com', 'https://example.com'],
    ['https://my_bot.example', 'my_bot.example', 'https://my_bot.example'],
    ['https://127.0.0.1', '127.0.0.1', 'https://127.0.0.1'],
    ['https://127.0.0.1.', '127.0.0.1', 'https://127.0.0.1'],
    ['https://127.1', '127.0.0.1', 'https://127.0.0.1'],
    ['https://2130706433', '127.0.0.1', 'https://127.0.0.1'],
    ['https://0x7f000001', '127.0.0.1', 'https://127.0.0.1'],
    ['https://0x7f.1', '127.0.0.1', 'https://127.0.0.1'],
    ['https://0177.0.0.01', '127.0.0.1', 'https://127.0.0.1'],
    ['https://%31%32%37.0.0.1', '127.0.0.1', 'https://127.0.0.1'],
    ['https://①②⑦.⓪.⓪.①', '127.0.0.1', 'https://127.0.0.1'],
    ['https://0', '0.0.0.0', 'https://0.0.0.0'],
    ['https://[::1]:8443', '::1', 'https://[::1]:8443'],
    ['https://[0:0:0:0:0:0:0:1]', '::1', 'https://[::1]'],
    ['https://[::ffff:127.0.0.1]', '::ffff:7f00:1', 'https://[::ffff:7f00:1]'],
    ['https://localhost.', 'localhost', 'https://localhost'],
    ['https://LOCALHOST', 'localhost', 'https://localhost'],
    ['https://example.com@127.0.0.1', '127.0.0.1', 'https://127.0.0.1'],
    ['https://127.0.0.1@example.com', 'example.com', 'https://example.com'],
    ['https://example.com:pass@10.0.0.1#@example.com', '10.0.0.1', 'https://10.0.0.1'],
    ['example.com/hook', 'example.com', 'https://example.com'],
    ['example.com:8443', 'example.com', 'https://example.com:8443'],
    ['localhost:80/x:y', 'localhost', 'https://localhost:80'],
    ['[::1]:8443/', '::1', 'https://[::1]:8443'],
    ['https://127.0.0.1\\@example.com', '127.0.0.1', 'https://127.0.0.1'],
  ])('the host of %s is %s', (url, host, origin) => expect(readTarget(url)).toMatchObject({ host, origin }));
});

test('the user and password of a webhook URL are sent as basic authorization', () => {
  const { authorization } = readTarget('https://us%C3%A9r:p%40ss@example.com/');
  expect(authorization).toBe(`Basic ${Buffer.from('usér:p@ss').toString('base64')}`);
  expect(readTarget('https://only@example.com/').authorization).toBe(
    `Basic ${Buffer.from('only:').toString('base64')}`,
  );
});

describe('a webhook URL without HTTPS is refused', () => {
  test.each([
    'http://example.com',
    'http://127.0.0.1',
    'ftp://example.com',
    'wss://example.com',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'gopher://example.com:6379/_',
    'data:text/plain,x',
    'unix:/var/run/docker.sock',
    'httpss://example.com',
  ])('the webhook URL %s is refused', (url) => {
    expect(refusalOf(url)).toBe('Bad Request: bad webhook: An HTTPS URL must be provided for webhook');
  });
});

describe('an invalid webhook URL is refused', () => {
  test.each([
    '/hook',
    'https://',
    'https:///',
    'https://:8443/',
    'https://user@/',
    'https://example.com:0/',
    'https://example.com:65536/',
    'https://example.com:port/',
    'https://exam ple.com/',
    'https://exa\nmple.com/',
    'https://exa\tmple.com/',
    'https://example.com/a b',
    'https://example.com/\u0000',
    'https://example.com/\u007f',
    'https://a..b/',
    'https://.example.com/',
    'https://example.com../',
    'https://./',
    'https://256.0.0.1/',
    'https://1.2.3.4.5/',
    'https://127.0.0.1../',
    'https://0x100000000/',
    'https://[::1',
    'https://::1/',
    'https://[::1]extra/',
    'https://[fe80::1%25eth0]/',
    'https://[fe80::1%eth0]/',
    'https://[127.0.0.1]/',
    'https://[]/',
    'https://exa<mple.com/',
    'https://exa%mple.com/',
    'https://exa%00mple.com/',
    'https://xn--a/',
    `https://${'a'.repeat(64)}.example/`,
    `https://${'a.'.repeat(127)}example/`,
    `https://example.com/${'a'.repeat(limits.webhook_url_length_max)}`,
    'https://us%FFer@example.com/',
    '',
    ' ',
  ])('the webhook URL %j is refused', (url) =>
    expect(refusalOf(url)).toBe('Bad Request: invalid webhook URL specified'),
  );
});
