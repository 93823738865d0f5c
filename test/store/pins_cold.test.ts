/**
 * Tests pins, reply keyboards, edits and replies that concern messages that Redis has evicted (interface §3, §4.3.5).
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Change } from '../../src/store/chats/streams.js';
import type { Media } from '../../src/store/core/codec.js';
import type { ChatRef } from '../../src/store/core/keys.js';
import type { NewMessage, Sender } from '../../src/store/messages/messages.js';
import { eventually } from '../clients/event_source.js';
import {
  chatKeys,
  evict,
  makeBot,
  makeDirect,
  poll,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
} from '../support/store.js';

let cluster: TestCluster;
let a: TestNode;
let b: TestNode;

beforeAll(async () => {
  cluster = await startCluster();
  [a, b] = await Promise.all([cluster.node(), cluster.node()]);
});
afterAll(() => cluster.close());

const allIds = Array.from({ length: 20 }, (_, i) => i + 1);
async function cool(chat: ChatRef): Promise<void> {
  await cluster.flush();
  await evict(a, ...chatKeys(cluster.keys, chat, ...allIds));
}
const stateOf = async (chat: ChatRef) => {
  const state = await b.store.chats.find(chat);
  if (!state) throw new Error('no such chat');
  return state;
};
const pinnedIn = async (chat: ChatRef) => b.store.history.pinned(await stateOf(chat));

const media: Media = { type: 'photo', id: 'f', unique: 'u', url: 'https://example.org/a.jpg' };
const photo = (caption: string): NewMessage => ({ ...text(caption), content: { text: caption, media } });

test('interface §3: an evicted message can be pinned in place of another message', async () => {
  const { chat, bot, user } = await makeDirect(a);
  const first = await a.store.messages.send(chat, bot.sender, text('first'));
  const second = await a.store.messages.send(chat, bot.sender, text('second'));
  await a.store.pins.pin(chat, bot.sender, first.id, true);
  await cool(chat);
  expect(await pinnedIn(chat)).toMatchObject({ id: first.id, record: { content: { text: 'first' } } });
  await cool(chat);
  await b.store.pins.pin(chat, user.sender, second.id, false);
  await cool(chat);
  expect(await pinnedIn(chat)).toMatchObject({ id: second.id, record: { content: { text: 'second' } } });
  // The service messages show the pinned message, even though none of these messages is in Redis.
  await cool(chat);
  const listed = (await b.store.history.list(chat, 0, 2)) ?? [];
  expect(listed.map(({ reply }) => reply?.record.content.text)).toEqual(['second', 'first']);
  const [, update] = await poll(a, bot);
  expect(update?.message.reply).toMatchObject({ id: second.id, record: { content: { text: 'second' } } });
  await cool(chat);
  await b.store.pins.unpin(chat, bot.sender, null);
  await cool(chat);
  expect(await pinnedIn(chat)).toBeNull();
  await expect(b.store.pins.unpin(chat, bot.sender, second.id)).rejects.toMatchObject({
    kind: 'message_to_unpin_not_found',
  });
});

test('a chat keeps its pin and its reply keyboards after many newer messages and an eviction', async () => {
  const { chat, bot } = await makeDirect(a);
  const origin = { keyboard: { keyboard: [[{ text: 'Yes' }]], resize_keyboard: true } } as const;
  const shown = await a.store.messages.send(chat, bot.sender, { ...text('ask'), origin });
  await a.store.pins.pin(chat, bot.sender, shown.id, false);
  const keyboardsIn = async () => b.store.history.keyboards(await stateOf(chat));
  for (let n = 0; n < 3; n++) await a.store.messages.send(chat, bot.sender, text('more'));
  await cool(chat);
  expect(await keyboardsIn()).toMatchObject([{ id: shown.id, record: { origin } }]);
  expect(await pinnedIn(chat)).toMatchObject({ id: shown.id });
  await b.store.pins.unpin(chat, bot.sender, null);
  await cool(chat);
  expect(await keyboardsIn()).toMatchObject([{ id: shown.id }]);
  await b.store.messages.send(chat, bot.sender, {
    ...text('end'),
    origin: { keyboard: { remove_keyboard: true } },
  });
  await cool(chat);
  expect(await keyboardsIn()).toMatchObject([
    { record: { origin: { keyboard: { remove_keyboard: true } } } },
  ]);
});

test('interface §3: deleting a pinned message unpins the message, even if Redis has evicted it', async () => {
  const { chat, bot } = await makeDirect(a);
  const { id } = await a.store.messages.send(chat, bot.sender, text('gone'));
  await a.store.pins.pin(chat, bot.sender, id, true);
  await cool(chat);
  await b.store.messages.remove(chat, bot.sender, id);
  expect((await stateOf(chat)).pinned).toBe(0);
  await cool(chat);
  expect((await stateOf(chat)).pinned).toBe(0);
  await expect(b.store.pins.pin(chat, bot.sender, id, true)).rejects.toMatchObject({
    kind: 'message_to_pin_not_found',
  });
});

test('interface §4.3.5: when the caption of an evicted message is edited, the message keeps its photo', async () => {
  const { chat, bot, user } = await makeDirect(a);
  const { id } = await a.store.messages.send(chat, bot.sender, photo('old'));
  await cool(chat);
  const caption = { what: 'caption', content: { text: 'new' }, markup: null } as const;
  const edited = await b.store.messages.edit(chat, bot.sender, id, caption);
  expect(edited.record.content).toEqual({ text: 'new', media });
  await expect(a.store.messages.edit(chat, bot.sender, id, caption)).rejects.toMatchObject({
    kind: 'message_not_modified',
  });
  const asText = { what: 'text', content: { text: 'new' }, markup: null } as const;
  await expect(a.store.messages.edit(chat, bot.sender, id, asText)).rejects.toMatchObject({
    kind: 'no_text_to_edit',
  });
  await new Promise((done) => setTimeout(done, 1_050));
  await cool(chat);
  const video: Media = { ...media, type: 'video', url: 'https://example.org/b.mp4' };
  const replaced = { what: 'media', content: { media: video }, markup: null } as const;
  const shown = await b.store.messages.edit(chat, bot.sender, id, replaced);
  expect(shown.record.content).toEqual({ media: video });
  const mine = await a.store.messages.send(chat, user.sender, text('words'));
  await expect(b.store.messages.edit(chat, user.sender, mine.id, replaced)).rejects.toMatchObject({
    kind: 'media_cant_be_edited',
  });
});

test('interface §5.11, §5.12: in a channel, can_edit_messages lets a bot pin and edit messages', async () => {
  const { user } = await makeDirect(a);
  const [editor, listener] = [await makeBot(a, user), await makeBot(a, user)];
  const channel = await a.store.chats.create('channel', 'News', user.id);
  const member = (who: { readonly id: number }, rights: Record<string, boolean>) =>
    a.store.chats.putMember(channel, { id: who.id, is_bot: true }, 'administrator', rights);
  await member(editor, { can_pin_messages: true });
  await member(listener, {});
  const { id } = await a.store.messages.send(channel, user.sender, text('post'));
  const pin = (who: Sender) => b.store.pins.pin(channel, who, id, true);
  await expect(pin(editor.sender)).rejects.toMatchObject({ kind: 'pin_not_allowed' });
  await member(editor, { can_edit_messages: true });
  await cool(channel);
  await pin(editor.sender);
  const edit = { what: 'text', content: { text: 'edited' }, markup: null } as const;
  await b.store.messages.edit(channel, editor.sender, id, edit);
  const kinds = async (bot: typeof editor) => (await poll(a, bot)).map(({ kind }) => kind);
  await eventually(async () =>
    expect(await kinds(listener)).toEqual([
      'my_chat_member',
      'channel_post',
      'channel_post',
      'edited_channel_post',
    ]),
  );
  // The bot gets an update about the pin that it made, but not about the edit that it made. It was promoted twice, so
  // there are two updates about promotions.
  expect(await kinds(editor)).toEqual(['my_chat_member', 'channel_post', 'my_chat_member', 'channel_post']);
  const [service] = (await b.store.history.list(channel, 0, 1)) ?? [];
  expect(service?.record).toMatchObject({ post: 0, origin: { service: { pinned: id } } });
});

test('behaviour §11: history and event stream show the replied-to message with each reply, even after an eviction', async () => {
  const { chat, bot, user } = await makeDirect(a);
  const question = await a.store.messages.send(chat, bot.sender, text('question'));
  await a.store.messages.send(chat, bot.sender, text('between'));
  await cool(chat);
  const changes: Change[] = [];
  const stop = await b.store.streams.open(user.id, '', {
    change: (change) => changes.push(change),
    ...{
      start: () => undefined,
      membership: () => undefined,
      read: () => undefined,
      settings: () => undefined,
      profile: () => undefined,
      scheduled: () => undefined,
      action: () => undefined,
      draft: async () => undefined,
      draftStopped: () => undefined,
      personDraft: () => undefined,
      leave: () => undefined,
    },
  });
  const answer = { ...text('answer'), replyTo: question.id };
  const { id } = await a.store.messages.send(chat, user.sender, answer);
  // The stream must read the message from Postgres, because the message is not in Redis.
  await evict(a, cluster.keys.message(chat, question.id));
  await eventually(() => expect(changes.map(({ message }) => message?.reply?.id)).toEqual([question.id]));
  await a.store.pins.pin(chat, bot.sender, question.id, true);
  await eventually(() =>
    expect(
      changes.slice(1).map(({ kind, notify, message }) => [kind, notify, message?.id, message?.reply?.id]),
    ).toEqual([
      ['n', false, id + 1, question.id],
      ['p', true, question.id, undefined],
    ]),
  );
  stop();
  const page = (await a.store.history.list(chat, id + 1, 3)) ?? [];
  expect(page.map(({ reply }) => reply?.record.content.text)).toEqual(['question', undefined, undefined]);
  const [hot] = (await a.store.history.list(chat, id + 1, 1)) ?? [];
  expect(hot?.reply).toMatchObject({ id: question.id, record: { content: { text: 'question' } } });
  await a.store.messages.remove(chat, bot.sender, question.id);
  const [left] = (await a.store.history.list(chat, id + 1, 1)) ?? [];
  expect([left?.id, left?.reply]).toEqual([id, null]);
});
