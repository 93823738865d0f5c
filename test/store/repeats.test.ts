/**
 * Tests calls that are repeated with the same idempotency key. The node of the first run died before it recorded the
 * answer, and the affected chat, message or bot has changed since then. The repeated call changes nothing and returns
 * the answer that the first run would have returned.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newKey } from '../../src/files/blob_store.js';
import { createFileIds } from '../../src/files/file_id.js';
import { purgeTombstones } from '../../src/journal/purge.js';
import { limits } from '../../src/limits.js';
import type { DispatchOptions } from '../../src/server/call_context.js';
import type { MediaType } from '../../src/store/core/codec.js';
import type { User } from '../../src/store/core/control.js';
import type { ChatRef } from '../../src/store/core/keys.js';
import { call, dieUnnoted, type Upload } from '../support/keyed.js';
import {
  evict,
  makeDirect,
  makeUser,
  type Person,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
  uniqueName,
} from '../support/store.js';

let cluster: TestCluster;
let one: TestNode;
let two: TestNode;
let user: Person;
let bot: Person;
let chat: { readonly id: number; readonly user: number };

beforeAll(async () => {
  cluster = await startCluster();
  [one, two] = [await cluster.node(), await cluster.node()];
  await Promise.all([one.store.auth.start(), two.store.auth.start()]);
  ({ user, bot, chat } = await makeDirect(one));
});
afterAll(() => cluster?.close());

interface Shown {
  readonly caption: string;
  readonly media_group_id: string;
  readonly photo: ReadonlyArray<{ readonly file_id: string }>;
}

let keys = 0;

/**
 * Makes a call whose node dies, then runs `meanwhile`, then makes the same call on another node. Returns the result of
 * the second call.
 */
async function again(
  method: string,
  params: object,
  meanwhile: () => Promise<unknown>,
  caller: Person = bot,
  upload: Upload = {},
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
): Promise<any> {
  const key = `again ${++keys}`;
  await dieUnnoted(one, () => call(one, caller, method, params, key, upload));
  await meanwhile();
  const reply = await call(two, caller, method, params, key, upload);
  expect(reply).toMatchObject({ status: 200 });
  const { ok, result, ...flat } = JSON.parse(reply.body);
  expect(ok).toBe(true);
  return result ?? flat;
}

const send = async (value = 'x') => (await one.store.messages.send(chat, bot.sender, text(value))).id;
const newest = async () => (await one.store.chats.find(chat))?.newest as number;
const pinned = async () => (await one.store.chats.find(chat))?.pinned;

async function newGroup(type: 'group' | 'channel' = 'group', rights = {}): Promise<ChatRef> {
  const made = await one.store.chats.create(type, 'Group', user.id);
  const status = type === 'channel' ? 'administrator' : 'member';
  await one.store.chats.putMember(made, { id: bot.id, is_bot: true }, status, rights, user.id);
  return made;
}

test('behaviour §5: if a pin had no effect, the repeated call leaves a later pin in place', async () => {
  const [a, b] = [await send(), await send()];
  await one.store.pins.pin(chat, bot.sender, a, true);
  const result = await again('pinChatMessage', { chat_id: user.id, message_id: a }, () =>
    one.store.pins.pin(chat, bot.sender, b, true),
  );
  expect([result, await pinned()]).toEqual([true, b]);
});

test('behaviour §5: if an unpinAll found no pins, the repeated call does not remove a later pin', async () => {
  const message = await send();
  await one.store.pins.unpinAll(chat, bot.sender);
  const result = await again('unpinAllChatMessages', { chat_id: user.id }, () =>
    one.store.pins.pin(chat, bot.sender, message, true),
  );
  expect([result, await pinned()]).toEqual([true, message]);
});

test('behaviour §1: a repeated send succeeds even if the replied-to message was deleted and the bot blocked meanwhile', async () => {
  const target = await send();
  const params = { chat_id: user.id, text: 'an answer', reply_to_message_id: target };
  const before = await newest();
  const result = await again('sendMessage', params, async () => {
    await one.store.messages.remove(chat, bot.sender, target);
    await one.store.chats.setBlocked(bot.id, user.id, true);
  });
  await one.store.chats.setBlocked(bot.id, user.id, false);
  expect(result).toMatchObject({ message_id: before + 1, text: 'an answer' });
  expect(result.reply_to_message).toBeUndefined();
  expect(await newest()).toBe(before + 1);
});

test('behaviour §1: a repeated send to a group succeeds even if the bot was removed from the group meanwhile', async () => {
  const group = await newGroup();
  const result = await again('sendMessage', { chat_id: group.id, text: 'hello' }, () =>
    one.store.chats.putMember(group, { id: bot.id, is_bot: true }, 'kicked', {}, user.id),
  );
  expect(result).toMatchObject({ chat: { id: group.id }, text: 'hello' });
});

test.each(['direct', 'group'])(
  'behaviour §7: a repeated edit in a %s succeeds even if the message was deleted meanwhile',
  async (kind) => {
    const at = kind === 'direct' ? chat : await newGroup();
    const id = (await one.store.messages.send(at, bot.sender, text('first'))).id;
    const params = { chat_id: kind === 'direct' ? user.id : at.id, message_id: id, text: 'second' };
    const result = await again('editMessageText', params, async () => {
      await one.store.messages.remove(at, bot.sender, id);
      await cluster.flush();
      await evict(one, cluster.keys.message(at, id));
    });
    expect(result).toMatchObject({ message_id: id, text: 'second', edit_date: expect.any(Number) });
  },
);

test('behaviour §7: a repeated edit gets the answer of the first run even if the message was edited again', async () => {
  const id = await send('first');
  const edit = { chat_id: user.id, message_id: id, text: 'second' };
  const result = await again('editMessageText', edit, async () => {
    await sleep(limits.edit_interval_ms_min + 20);
    const content = { text: 'third' };
    await one.store.messages.edit(chat, bot.sender, id, { what: 'text', content, markup: null });
  });
  expect(result.text).toBe('second');
});

const otherGroup = async () => {
  const group = await newGroup();
  return { group, id: (await one.store.messages.send(group, bot.sender, text('original'))).id };
};

test.each(['forwardMessage', 'copyMessage', 'forwardMessages', 'copyMessages'])(
  'behaviour §6: a repeated %s succeeds even if its source was deleted and the bot removed from the source chat',
  async (method) => {
    const { group, id } = await otherGroup();
    const ids = method.endsWith('s') ? { message_ids: [id] } : { message_id: id };
    const before = await newest();
    const result = await again(method, { chat_id: user.id, from_chat_id: group.id, ...ids }, async () => {
      await one.store.messages.remove(group, bot.sender, id);
      await one.store.chats.putMember(group, { id: bot.id, is_bot: true }, 'kicked', {}, user.id);
    });
    expect([result].flat()[0]).toMatchObject({ message_id: before + 1 });
    if (method === 'forwardMessage')
      expect(result).toMatchObject({ text: 'original', forward_origin: { type: 'user' } });
    expect(await newest()).toBe(before + 1);
  },
);

test('behaviour §6: repeating a forward succeeds even if the original message and its forwarded copy were deleted', async () => {
  const { group, id } = await otherGroup();
  const before = await newest();
  const params = { chat_id: user.id, from_chat_id: group.id, message_id: id };
  const result = await again('forwardMessage', params, async () => {
    await one.store.messages.remove(group, bot.sender, id);
    await one.store.messages.remove(chat, bot.sender, before + 1);
  });
  expect(result).toMatchObject({ message_id: before + 1, text: 'original' });
});

test('behaviour §8: a repeated edit of a post succeeds even if the post was deleted', async () => {
  const channel = await newGroup('channel', { can_post_messages: true });
  const sent = await one.store.messages.send(channel, bot.sender, text('post'));
  const params = { post_id: sent.record.post, text: 'edited' };
  const result = await again('editPost', params, () =>
    one.store.messages.remove(channel, bot.sender, sent.id),
  );
  expect(result).toMatchObject({ id: sent.record.post, text: 'edited', reactions: [] });
});

test('behaviour §4: a repeated upload is stored once', async () => {
  const kept: string[] = [];
  const files = {
    ...createFileIds('pepper of this test'),
    keep: async (_owner: number, type: MediaType) => {
      kept.push(type);
      return { type, key: newKey(), size: 3 };
    },
    discard: async () => undefined,
  } as unknown as DispatchOptions['files'];
  const media = ['a', 'b'].map((name) => ({ type: 'photo', media: `attach://${name}`, caption: name }));
  const upload = { files, parts: { a: 'one', b: 'two' } };
  const before = await newest();
  const album = await again(
    'sendMediaGroup',
    { chat_id: user.id, media },
    async () => undefined,
    bot,
    upload,
  );
  const stored = (await one.store.messages.readMany(chat, bot.sender, [before + 1, before + 2])).map(
    (message) => message?.record,
  );
  expect(kept).toEqual(['photo', 'photo']);
  expect(
    album.map((message: Shown) => [message.caption, message.media_group_id, message.photo[0]?.file_id]),
  ).toEqual(stored.map((record) => [record?.content.text, record?.origin.group, record?.content.media?.id]));
  const photo = { chat_id: user.id, photo: 'attach://a' };
  const single = await again('sendPhoto', photo, async () => undefined, bot, upload);
  const edit = { chat_id: user.id, message_id: single.message_id, media: media[1] };
  const edited = await again('editMessageMedia', edit, () => send(), bot, upload);
  expect(kept).toHaveLength(4);
  const [now] = await one.store.messages.readMany(chat, bot.sender, [single.message_id]);
  expect(edited.photo[0].file_id).toBe(now?.record.content.media?.id);
});

test('behaviour §4: repeated changes of a set of stickers succeed and store each file once', async () => {
  const kept: string[] = [];
  const ids = createFileIds('pepper of this test');
  const files = {
    ...ids,
    keep: async (_owner: number, type: MediaType) => {
      const key = newKey();
      kept.push(key);
      return { type, key, size: 3, mime: 'image/png', width: 512, height: 512 };
    },
    discard: async () => undefined,
  } as unknown as DispatchOptions['files'];
  const upload = { files, parts: { a: 'one' } };
  const name = `cats_by_${(await one.store.bots.find(bot.id))?.username}`;
  const sticker = { sticker: 'attach://a', format: 'static', emoji_list: ['😺'] };
  const made = async () => (await two.store.stickerSets.find(name)).stickers.map(({ key }) => key);
  const repeat = (method: string, params: object) =>
    again(method, { user_id: user.id, name, ...params }, async () => undefined, bot, upload);
  expect(await repeat('createNewStickerSet', { title: 'Cats', stickers: [sticker] })).toBe(true);
  expect(await made()).toEqual(kept);
  expect(await repeat('addStickerToSet', { sticker })).toBe(true);
  expect(await made()).toEqual(kept);
  const [old, second] = kept;
  const old_sticker = ids.idOf({ type: 'sticker', key: old as string, set: name });
  expect(await repeat('replaceStickerInSet', { old_sticker, sticker })).toBe(true);
  expect(kept).toHaveLength(3);
  expect(await made()).toEqual([kept[2], second]);
});

const member = async (group: ChatRef, who: Person) => (await one.store.chats.member(group, who.id)).status;

test('behaviour §4: a repeated leaveChat does not remove a bot that was added again', async () => {
  const group = await newGroup();
  const stay = () => one.store.chats.putMember(group, { id: bot.id, is_bot: true }, 'member', {}, user.id);
  expect(await again('leaveChat', { chat_id: group.id }, stay)).toBe(true);
  expect(await member(group, bot)).toBe('member');
  // The repeated call also succeeds if nothing changed in between.
  expect(await again('leaveChat', { chat_id: group.id }, async () => undefined)).toBe(true);
  expect(await member(group, bot)).toBe('left');
});

test('behaviour §11: a repeated call that adds or removes a member gets the first answer and undoes no later change', async () => {
  const group = await newGroup();
  const ann = await makeUser(one);
  const path = `/api/chats/${group.id}`;
  const set = (status: 'member' | 'left' | 'kicked') =>
    one.store.chats.putMember(group, { id: ann.id, is_bot: false }, status, {}, user.id);
  const put = await again(`PUT ${path}/members/${ann.id}`, {}, () => set('kicked'), user);
  expect([put.status, await member(group, ann)]).toEqual(['member', 'kicked']);
  await set('member');
  expect(await again(`DELETE ${path}/members/${ann.id}`, {}, () => set('member'), user)).toBe(true);
  expect(await member(group, ann)).toBe('member');
  expect(await again(`POST ${path}/leave`, {}, () => set('kicked'), ann)).toBe(true);
  expect(await member(group, ann)).toBe('kicked');
});

test('behaviour §11: repeated calls create a chat, a bot or a token only once', async () => {
  const title = uniqueName();
  const made = await again('POST /api/chats', { type: 'group', title }, async () => undefined, user);
  const titled = await one.db.query('select id from chats where title = $1', [title]);
  expect(titled).toEqual([{ id: made.id }]);

  const bots = { username: `${uniqueName()}_bot`, name: 'Made' };
  const created = await again('POST /api/me/bots', bots, async () => undefined, user);
  expect(await one.store.bots.token(user.id, created.id)).toBe(created.token);
  const renew = `POST /api/me/bots/${created.id}/regenerate_token`;
  let since = '';
  const renewed = await again(
    renew,
    {},
    async () => {
      since = (await one.store.bots.regenerateToken(user.id, created.id)).token;
    },
    user,
  );
  expect([renewed.token, await one.store.bots.token(user.id, created.id)]).toEqual([since, since]);
});

test('behaviour §2, §4: a repeated call that sets a name or commands does not undo a later change', async () => {
  await again('setMyName', { name: 'first' }, () =>
    one.store.bots.setTexts(bot.id, { name: { '': 'second' } }),
  );
  expect((await one.store.bots.find(bot.id))?.name).toBe('second');
  const commands = (command: string) => [{ command, description: 'd' }];
  await again('setMyCommands', { commands: commands('first') }, () =>
    one.store.bots.setCommands(bot.id, 'default|', commands('second')),
  );
  expect((await one.store.bots.commands(bot.id))['default|']).toEqual(commands('second'));
});

test('behaviour §8: a repeated reaction succeeds if the post was deleted, and its answer then contains no reactions', async () => {
  const channel = await newGroup('channel', { can_post_messages: true });
  const sent = await one.store.messages.send(channel, bot.sender, text('post'));
  const { post } = sent.record;
  const person = (await one.store.users.find(user.id)) as User;
  const clear = () => one.store.posts.react(post, person, { what: 'clear' });
  const path = `POST /api/posts/${post}`;
  const none = { reactions: [], my_reactions: [] };
  expect(await again(`${path}/reactions`, { emoji: '👍' }, clear, user)).toEqual(none);
  expect(await again(`${path}/like`, {}, clear, user)).toEqual(none);
  const gone = async () => {
    await one.store.messages.remove(channel, bot.sender, sent.id);
    await cluster.flush();
    await evict(one, cluster.keys.post(post));
  };
  expect(await again(`${path}/reactions`, { emoji: '👍' }, gone, user)).toEqual(none);
});

test('starting a bot twice under one idempotency key sends one message', async () => {
  const eve = await makeUser(one);
  const { username } = (await one.store.bots.find(bot.id)) as { username: string };
  const start = `POST /api/bots/${username}/start`;
  const block = () => one.store.chats.setBlocked(bot.id, eve.id, true);
  expect(await again(start, {}, block, eve)).toMatchObject({ text: '/start', message_id: 1 });
  expect((await one.store.chats.find({ id: bot.id, user: eve.id }))?.kind).toBe('blocked');

  await one.db.query("update control_requests set created_at = now() - interval '25 hours'");
  await one.db.query("insert into control_requests (request) values ('fresh')");
  // Purges run at most once a minute. Another test may have run one, so this removes the time of the last purge.
  await one.db.query("delete from installation where name = 'tombstones_purged_at'");
  const sharded = one.shards.all.length === 1;
  await purgeTombstones(one.pool, undefined, undefined, { control: true, sharded });
  expect(await one.db.query('select request from control_requests')).toEqual([{ request: 'fresh' }]);
});

test('if the answer with a new token is lost, the repeated call returns the same working token', async () => {
  const gil = await makeUser(one);
  const before = (await one.store.users.tokens(gil.id, 0, 100)).length;
  const nothing = async () => {};
  const issued = await again('POST /api/me/tokens', { name: 'laptop' }, nothing, gil);
  const listed = await one.store.users.tokens(gil.id, 0, 100);
  expect(listed.slice(before)).toMatchObject([{ id: issued.id, name: 'laptop' }]);
  expect(await two.store.auth.user(issued.token)).toMatchObject({ id: gil.id });
  const removed = () =>
    one.store.users.tokens(gil.id, 0, 100).then((left) => expect(left).toHaveLength(before));
  expect(await again('DELETE /api/me/tokens', { name: 'laptop' }, removed, gil)).toBe(true);
});
