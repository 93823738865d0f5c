import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEndpoint } from '../../src/server/endpoint.js';
import { createRouter } from '../../src/server/router.js';

const endpoint = (verb: 'GET' | 'POST', path: string) =>
  defineEndpoint({ verb, path, summary: '', params: z.object({}), handler: () => undefined });

const find = createRouter([
  endpoint('GET', '/api/things/new'),
  endpoint('GET', '/api/things/{thing}'),
  endpoint('POST', '/api/things/{thing}'),
  endpoint('GET', '/api/things/{thing}/parts/{part}'),
  endpoint('GET', '/api/others/{other}'),
]);

function found(verb: string, path: string): unknown {
  const match = find(verb, path);
  return match === null || match === 'other_verb' ? match : [match.endpoint.path, match.segments];
}

describe('the router', () => {
  test.each([
    ['GET', '/api/things/7', ['/api/things/{thing}', { thing: '7' }]],
    ['GET', '/api/things/new', ['/api/things/new', {}]],
    ['POST', '/api/things/new', ['/api/things/{thing}', { thing: 'new' }]],
    [
      'GET',
      '/api/things/a%2Fb/parts/%C3%BC',
      ['/api/things/{thing}/parts/{part}', { thing: 'a/b', part: 'ü' }],
    ],
    ['GET', '/api/others/7', ['/api/others/{other}', { other: '7' }]],
  ])('the router finds the endpoint and the segments of %s %s', (verb, path, wanted) =>
    expect(found(verb, path)).toEqual(wanted),
  );

  test('a known path with a wrong HTTP verb is reported as other_verb', () => {
    expect(found('POST', '/api/others/7')).toBe('other_verb');
  });

  test.each([
    '/api/things/',
    '/api/things/%',
    '/api/things/7/',
    '/api/none/7',
    '/api/things/7/pieces/1',
    '/api',
  ])('the router finds no endpoint at %s', (path) => expect(found('GET', path)).toBeNull());
});
