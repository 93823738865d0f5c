/** Checks the test table itself: it must have all rows except those whose method or endpoint does not exist. */
import { expect, test } from 'vitest';
import { endpoints } from '../../src/endpoints/endpoints.gen.js';
import { methods } from '../../src/methods/methods.gen.js';
import { leftOut } from './left_out.js';
import { rows } from './rows.js';

const titles = rows.map(({ title }) => title);
const built = [...methods.map(({ name }) => name), ...endpoints.map(({ verb, path }) => `${verb} ${path}`)];

test('the titles of the rows are unique and begin with their section', () => {
  expect(titles.filter((title, i) => titles.indexOf(title) !== i)).toEqual([]);
  expect(titles.filter((title) => !/^§(2|3|4\.[1234](\.[1-7])?|6|7|8) \S/.test(title))).toEqual([]);
});

test('a row of the test table is left out only if Petrel lacks its method or endpoint', () => {
  expect(leftOut.filter(({ waitsFor }) => built.includes(waitsFor))).toEqual([]);
});

/** The subjects in the interface's tables, in order. Each subject must occur in the title of a row. */
const subjects = {
  '§2': ['Reaction entry', 'Post reaction payload', 'Post object', 'Envelope', 'Bot identity:']
    .concat(['Bot identity texts: name', 'Bot identity texts: description'])
    .concat(['Bot identity texts: short_description', 'Other identity items', 'Update', 'Message'])
    .concat(['Webhook info', 'Media descriptor', 'Inline keyboard']),
  '§3': [
    'Post reaction:',
    'Post reactions:',
    'Heart reaction',
    'Chat pin',
    'Bot token',
    'Bot ownership',
  ].concat(['Update delivery mode: polling, setWebhook', 'Update delivery mode: webhook, deleteWebhook']),
  '§4.1': ['POST /api/posts/{id}/reactions', 'DELETE /api/posts/{id}/reactions?emoji='].concat([
    'DELETE /api/posts/{id}/reactions,',
    'POST /api/posts/{id}/like',
    'DELETE /api/posts/{id}/like',
  ]),
  '§4.2': ['POST /api/me/bots/{bot_id}/regenerate_token'],
  '§4.3': [
    'GET getMe',
    'POST setMyName',
    'GET getMyName',
    'POST setMyDescription',
    'POST setMyShortDescription',
  ]
    .concat(['POST pinChatMessage', 'POST unpinChatMessage', 'POST unpinAllChatMessages'])
    .concat(['POST forwardMessage:', 'POST forwardMessages', 'POST copyMessage', 'POST editMessageText'])
    .concat(['POST editMessageCaption', 'POST editMessageMedia', 'POST editMessageReplyMarkup'])
    .concat(['POST setWebhook', 'GET getWebhookInfo', 'GET deleteWebhook']),
  '§4.4': ['POST to the webhook URL'],
  '§6': ['setWebhook', 'Delivery rules', 'pinned_message', 'post reactions'],
  '§7': ['Invalid bot token', 'Protected content: forwardMessage ', 'Protected content: copyMessage '].concat(
    ['Edit frequency', 'Forbidden edit: type', "of another's message", 'older than 48 hours'],
  ),
  '§8': [
    'Bot name length',
    'Description length',
    'Short description length',
    'its size',
    'Messages per batch',
  ]
    .concat(['Pinned messages per chat', 'max_connections', 'Webhook response time', 'Webhook request size'])
    .concat(['Webhook URL scheme', 'Webhook address', 'Edit frequency', 'Editable age']),
};

test.each(Object.entries(subjects))(
  'every subject of the tables in section %s has a row or is left out',
  (section, all) => {
    const known = [...titles, ...leftOut.map(({ row }) => row)];
    const missing = all.filter(
      (subject) => !known.some((title) => title.includes(section) && title.includes(subject)),
    );
    expect(missing).toEqual([]);
  },
);

test.each([1, 2, 3, 4, 5, 6, 7])('§4.3.%s: the numbered behaviour has a row', (n) => {
  expect(titles.filter((title) => title.includes(`§4.3.${n} `))).not.toEqual([]);
});
