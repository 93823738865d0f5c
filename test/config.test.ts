/** Settings that have a form of their own. */
import { describe, expect, test } from 'vitest';
import { readConfig } from '../src/config.js';

describe('WEBHOOK_ALLOW_CIDRS', () => {
  test.each<[text: string, ranges: string[]]>([
    ['', []],
    ['127.0.0.0/8', ['127.0.0.0/8']],
    [' 10.0.0.0/8 , fd00::/8', ['10.0.0.0/8', 'fd00::/8']],
    ['192.168.1.7', ['192.168.1.7/32']],
    ['::1', ['::1/128']],
    ['0.0.0.0/0,::/0', ['0.0.0.0/0', '::/0']],
  ])('%j', (text, ranges) => {
    expect(readConfig({ WEBHOOK_ALLOW_CIDRS: text }).WEBHOOK_ALLOW_CIDRS).toEqual(ranges);
  });

  test.each([
    '10.0.0.0/33',
    '::/129',
    '10.0.0/8',
    '010.0.0.0/8',
    '0x0a.0.0.0/8',
    '10.0.0.0/',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    'localhost',
    'fe80::1%lo',
    'fe80::%lo/64',
    '10.0.0.0/8,',
    '/8',
  ])('%j is refused', (text) => {
    expect(() => readConfig({ WEBHOOK_ALLOW_CIDRS: text })).toThrow(
      'WEBHOOK_ALLOW_CIDRS must be ranges of addresses like 10.0.0.0/8, separated by commas',
    );
  });
});

test('HEADER_SERVICE_NAME becomes part of header names, so it is one', () => {
  expect(readConfig({}).HEADER_SERVICE_NAME).toBe('Service');
  expect(readConfig({ HEADER_SERVICE_NAME: 'My-Bots2' }).HEADER_SERVICE_NAME).toBe('My-Bots2');
  for (const name of ['a b', 'a:', '-a', 'ä', 'a\r\nX: y', 'a'.repeat(33)])
    expect(() => readConfig({ HEADER_SERVICE_NAME: name })).toThrow('HEADER_SERVICE_NAME must be');
});
