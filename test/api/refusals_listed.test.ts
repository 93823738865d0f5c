/** Tests that methods of the same kind document the same refusals. */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { ErrorName } from '../../src/errors.js';
import { methods } from '../../src/methods/methods.gen.js';
import type { Method } from '../../src/server/method.js';

const takes = ({ params }: Method, name: string) => params instanceof z.ZodObject && name in params.shape;

const sends = ({ name }: Method) =>
  /^(send|forward|copy)/.test(name) && !['sendChatAction', 'sendMessageDraft'].includes(name);
const edits = ({ name }: Method) => name.startsWith('editMessage');

/**
 * Matches methods that require a chat. Leaves out methods for the menu button, because their parameter `chat_id` is
 * optional and names a person.
 */
const inChat = ({ params }: Method) =>
  params instanceof z.ZodObject && params.shape.chat_id?.safeParse(undefined).success === false;

const rules: ReadonlyArray<readonly [string, (method: Method) => boolean, readonly ErrorName[]]> = [
  ['takes chat_id', inChat, ['chat_id_empty', 'chat_not_found']],
  // createPost needs a channel, and sendMessageDraft needs a direct chat, so their refusals differ. A bot can set its
  // commands for a chat without being a member of this chat.
  [
    'has access to a chat',
    (method) => inChat(method) && !['createPost', 'sendMessageDraft'].includes(method.name),
    ['not_group_member', 'not_channel_member'],
  ],
  ['sends', sends, ['cant_initiate', 'bot_blocked', 'posting_not_allowed']],
  ['edits', edits, ['message_to_edit_not_found', 'message_cant_be_edited', 'message_not_modified']],
  [
    'takes a keyboard',
    (method) => takes(method, 'reply_markup'),
    [
      ...(['keyboard_unparsable', 'keyboard_too_large', 'button_data_invalid'] as const),
      ...(['button_text_empty', 'button_type_invalid', 'button_url_invalid'] as const),
      ...(['button_copy_text_invalid', 'button_query_invalid'] as const),
    ],
  ],
  [
    'takes formatted text',
    (method) => takes(method, 'parse_mode'),
    ['parse_mode_unsupported', 'entities_unparsable', 'entities_too_long'],
  ],
  ['replies to a message', (method) => takes(method, 'reply_parameters'), ['reply_not_found']],
];

describe.each(rules)('every method that %s documents the refusals of this group', (_, concerns, refusals) => {
  const own = methods.filter(concerns);

  test('at least two methods match the rule', () => expect(own.length).toBeGreaterThan(1));

  test.each(own.map((method) => [method.name, method] as const))(
    '%s documents the refusals',
    (__, method) => {
      expect(refusals.filter((name) => !method.errors.includes(name))).toEqual([]);
    },
  );
});
