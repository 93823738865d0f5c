/**
 * Tests that every list has a maximum size. `lists.long.test.ts` fills each list and measures its pages and its largest
 * answer.
 */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { endpoints } from '../../src/endpoints/endpoints.gen.js';
import { methods } from '../../src/methods/methods.gen.js';
import { rows } from './lists.cases.js';

const hasList = (schema: z.ZodType | undefined): boolean =>
  schema !== undefined &&
  JSON.stringify(z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any' })).includes('"type":"array"');

const listed = [
  ...endpoints
    .filter(({ result, body, contentType }) => contentType !== undefined || hasList(result) || hasList(body))
    .map(({ verb, path }) => `${verb} ${path}`),
  ...methods.filter(({ result }) => hasList(result)).map(({ name }) => name),
];

test('the table of lists has a row for each endpoint or method that returns a list', () => {
  expect(Object.keys(rows).filter((name) => !listed.includes(name))).toEqual([]);
  expect(listed.filter((name) => !(name in rows))).toEqual([]);
});

test('every endpoint that returns a list divides the list into pages', () => {
  const plain = endpoints.filter(({ result, params }) => {
    const fields = result instanceof z.ZodObject ? result.shape : {};
    const hasItems = result instanceof z.ZodArray || 'items' in fields;
    return hasItems && !('cursor' in (params as z.ZodObject).shape);
  });
  // These lists are not divided into pages, because other limits apply to them: one reference per forwarded message,
  // one message per item of an album, 50 entries of the bot ranking, 10 routes per bot, 20 replays per bot, 30 sessions
  // per person, and 10 suggestions.
  expect(plain.map(({ verb, path }) => `${verb} ${path}`)).toEqual([
    'GET /api/admin/bots',
    'POST /api/chats/{chat_id}/forward',
    'POST /api/chats/{chat_id}/albums',
    'GET /api/me/sessions',
    'GET /api/suggestions',
    'GET /api/me/bots/{bot_id}/webhook/replays',
    'GET /api/me/bots/{bot_id}/webhook/routes',
  ]);
});
