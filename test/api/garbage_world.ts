/**
 * Creates two sets of data for garbage calls: one on which the callers have every right, and one that they cannot
 * access.
 */
import type { Redis } from 'ioredis';
import pg from 'pg';
import { expect, vi } from 'vitest';
import { rightNames } from '../../src/rules/rights.js';
import { openMasters } from '../support/cluster.js';
import { png } from '../support/samples.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { answered } from '../support/service_calls.js';
import { field, post } from '../support/uploads.js';
import type { Callers, Target } from './garbage_calls.js';
import type { Hints, Json } from './garbage_values.js';
import { forwarded } from './refused.js';

interface Corner {
  readonly owner: TestUser;
  /** A person without rights who is a member of the group and the channel. */
  readonly member: TestUser;
  readonly bot: TestBot;
  readonly group: number;
  readonly channel: number;
  readonly posts: readonly string[];
  readonly fileId: string;
  /** Message ids of polls and of live locations. */
  readonly polls: readonly number[];
  readonly lives: readonly number[];
  readonly links: readonly string[];
  readonly stickers: readonly string[];
}

const rights = Object.fromEntries(rightNames.map((name) => [name, true]));

/** Returns the full name of a bot's sticker set. Generated calls may delete the set with the name `spare`. */
const setName = (bot: TestBot, name: string) => `${name}_by_${bot.username}`;

/** Creates two sticker sets and returns the file ids of the first set. */
async function drawStickers(service: Service, owner: TestUser, bot: TestBot): Promise<string[]> {
  for (const name of ['cats', 'spare']) {
    const pictures = [png(512, 400), png(400, 512), png(512, 512)];
    const stickers = pictures.map((_, i) => ({
      sticker: `attach://s${i}`,
      format: 'static',
      emoji_list: ['👍'],
    }));
    await resultOf(
      post(`${service.fronts[0].url}/bot${bot.token}/createNewStickerSet`, [
        ...[field('user_id', owner.id), field('name', setName(bot, name)), field('title', name)],
        field('stickers', JSON.stringify(stickers)),
        ...pictures.map((body, i) => ({
          head: `Content-Disposition: form-data; name="s${i}"; filename="s.png"`,
          body,
        })),
      ]),
    );
  }
  const { stickers } = await resultOf(service.bot(bot, 'getStickerSet', { name: setName(bot, 'cats') }));
  return stickers.map(({ file_id }: { file_id: string }) => file_id);
}

/** Creates an owner, a bot with administrator rights, and chats with texts, media, buttons, pins and reactions. */
async function furnish(service: Service, name: string): Promise<Corner> {
  const owner = await service.newUser(name);
  const member = await service.newUser(`${name}_friend`);
  const bot = await service.newBot(owner, name);
  const app = (verb: string, path: string, body?: object) => resultOf(service.app(owner, verb, path, body));
  const call = (method: string, params: object) => resultOf(service.bot(bot, method, { ...params }));
  await service.openChat(owner, bot);
  const group = await service.newGroup(owner, `${name}'s group`, [bot]);
  const { id: channel } = await app('POST', '/api/chats', { type: 'channel', title: name, private: true });
  for (const chat of [group, channel]) {
    await app('PUT', `/api/chats/${chat}/members/${bot.id}`, { status: 'administrator', rights });
    await app('PUT', `/api/chats/${chat}/members/${member.id}`, { status: 'member' });
  }
  const links: string[] = [];
  for (let i = 0; i < 12; i++)
    links.push((await call('createChatInviteLink', { chat_id: group })).invite_link);
  const polls = new Set<number>();
  const lives = new Set<number>();
  const keyboard = { inline_keyboard: [[{ text: 'a', callback_data: 'a' }]] };
  let fileId = '';
  for (const chat_id of [owner.id, group, channel]) {
    const seen = chat_id === owner.id ? bot.id : chat_id;
    for (const text of ['one', 'two', 'three']) await app('POST', `/api/chats/${seen}/messages`, { text });
    for (const text of ['four', 'five']) await call('sendMessage', { chat_id, text, reply_markup: keyboard });
    const sent = await resultOf(
      post(`${service.fronts[0].url}/bot${bot.token}/sendPhoto`, [
        ...[field('chat_id', chat_id), field('caption', 'six')],
        { head: 'Content-Disposition: form-data; name="photo"; filename="p.png"', body: png(8, 8) },
      ]),
    );
    fileId = sent.photo[0].file_id;
    await call('pinChatMessage', { chat_id, message_id: sent.message_id });
    for (const question of ['one', 'two'])
      polls.add((await call('sendPoll', { chat_id, question, options: ['a', 'b'] })).message_id);
    const live = { chat_id, latitude: 1, longitude: 1, live_period: 3_600 };
    for (let i = 0; i < 2; i++) lives.add((await call('sendLocation', live)).message_id);
  }
  const { items: posts } = await app('GET', `/api/chats/${channel}/posts`);
  for (const { id } of posts) await app('POST', `/api/posts/${id}/reactions`, { emoji: '❤' });
  await call('setMyCommands', { commands: [{ command: 'a', description: 'b' }] });
  await call('setMyDescription', { description: 'says', language_code: 'ru' });
  const names = posts.flatMap((post: { id: number; external_id: string }) => [
    String(post.id),
    post.external_id,
  ]);
  const stickers = await drawStickers(service, owner, bot);
  return {
    ...{ owner, member, bot, group, channel, posts: names, fileId, links, stickers },
    ...{ polls: [...polls], lives: [...lives] },
  };
}

/**
 * Reads everything that the owner and the bot can see: chats, members, messages, posts, settings of the bot, pending
 * updates.
 */
async function observe(service: Service, { owner, bot, group, channel }: Corner): Promise<unknown> {
  const app = (path: string) => resultOf(answered(() => service.app(owner, 'GET', path)));
  const call = (method: string, params = {}) => resultOf(answered(() => service.bot(bot, method, params)));
  return Promise.all([
    ...[
      '/api/me',
      '/api/chats',
      '/api/me/bots',
      `/api/me/bots/${bot.id}`,
      `/api/me/bots/${bot.id}/token`,
    ].map(app),
    ...[bot.id, group, channel].flatMap((chat) =>
      ['', '/messages?limit=100'].map((path) => app(`/api/chats/${chat}${path}`)),
    ),
    ...[group, channel].map((chat) => app(`/api/chats/${chat}/members`)),
    app(`/api/chats/${channel}/posts`),
    app(`/api/bots/${bot.username}`),
    call('getUpdates', { limit: 100 }),
    call('getWebhookInfo'),
    call('getMyCommands'),
  ]);
}

/** Waits until all pending control operations are finished, because they may still rewrite data in Redis. */
async function copiesSettled(service: Service): Promise<void> {
  const client = new pg.Client(service.databaseUrl);
  await client.connect();
  try {
    await vi.waitFor(
      async () => expect((await client.query('select 1 from control_outbox')).rowCount).toBe(0),
      { timeout: 30_000, interval: 100 },
    );
  } finally {
    await client.end();
  }
}

export interface GarbageWorld {
  readonly callers: Callers;
  readonly tokenId: number;
  readonly secrets: readonly string[];
  /**
   * Returns existing values for the parameters of a call. If `of` is 'own', uses only the data that the callers may
   * change.
   */
  hints(target: Target, of?: 'both' | 'own'): Hints;
  /** Reads all data that the callers cannot access. Their calls must not change this data. */
  watched(): Promise<unknown>;
  /**
   * Restores rights and pictures in the data that the callers may change. Earlier calls may have removed them, and
   * later calls need them.
   */
  mend(): Promise<void>;
  close(): void;
}

export async function openGarbageWorld(service: Service): Promise<GarbageWorld> {
  const own = await furnish(service, 'ann');
  const foreign = await furnish(service, 'olga');
  // No generated call is made by these bots and people, so generated calls may delete them or revoke their tokens.
  const spare = await service.newBot(own.owner, 'spare');
  const doomed = await service.newBot(own.owner, 'doomed');
  const victim = await service.newUser('vic');
  const leaver = await service.newUser('lev');
  const givePictures = async () => {
    const headers = { authorization: `Bearer ${own.owner.token}` };
    for (const kind of ['avatar', 'start_picture']) {
      const path = `${service.fronts[0].url}/api/me/bots/${spare.id}/${kind}`;
      const put = async () => {
        const answer = await fetch(path, { method: 'PUT', headers, body: new Uint8Array(png(640, 360)) });
        return { status: answer.status, headers: {}, body: await answer.json() };
      };
      expect((await answered(put)).status).toBe(200);
    }
  };
  await givePictures();
  // The owner has only this token, because no other token has been created yet.
  const [{ id: tokenId }] = await itemsOf(service.app(own.owner, 'GET', '/api/me/tokens'));
  await copiesSettled(service);
  const masters: readonly Redis[] = openMasters(service.redis);
  const stickerHints = (name: string): Hints => ({
    name:
      name === 'createNewStickerSet'
        ? Array.from({ length: 100 }, (_, i) => setName(own.bot, `new_${i}`))
        : [setName(own.bot, /^delete|^replace/.test(name) ? 'spare' : 'cats')],
    ...{ sticker: own.stickers, old_sticker: own.stickers, emoji_list: ['👍'], format: ['static'] },
  });
  const newNames: Json[] = Array.from({ length: 300 }, (_, i) => `new_${i}_bot`);
  const messageIds: Json[] = Array.from({ length: 24 }, (_, i) => i + 1);

  /**
   * Returns ids, three quarters of them from the data that the callers may change. If `of` is 'own', uses only this
   * data.
   */
  const often = <T extends Json>(pick: (corner: Corner) => readonly T[], of: 'both' | 'own'): Json[] => [
    ...[own, own, own].flatMap(pick),
    ...(of === 'both' ? pick(foreign) : []),
  ];

  /** Returns values for the parameter `id`, or undefined if `id` names a person in this call. */
  function idsOf(name: string): readonly Json[] | undefined {
    // Uses the numbers from 1 as token ids, because token ids count up from 1 across all people.
    if (name === 'DELETE /api/me/tokens') return messageIds;
    if (name.includes('/api/admin/bots/')) return [name.startsWith('GET') ? spare.id : doomed.id];
    return undefined;
  }

  function hints({ caller, name }: Target, of: 'both' | 'own' = 'both'): Hints {
    // Limits which people a call may name. Otherwise operators could revoke the callers' tokens, and people could add
    // anyone to their chats.
    const people =
      caller === 'admin'
        ? [name === 'DELETE /api/admin/users/{id}' ? leaver.id : victim.id]
        : often(({ owner, member, bot }) => [owner.id, member.id, bot.id], caller === 'bot' ? of : 'own');
    const chats = often(
      ({ owner, bot, group, channel }) => [caller === 'bot' ? owner.id : bot.id, group, channel],
      of,
    );
    const posts = often((corner) => corner.posts, of);
    const media = [...often(({ fileId }) => [fileId], of), 'https://example.org/x.png', 'attach://x'];
    const messages =
      name === 'stopPoll' ? own.polls : /MessageLiveLocation$/.test(name) ? own.lives : messageIds;
    return {
      ...{ chat_id: chats, from_chat_id: chats },
      ...{ message_id: messages, reply_to_message_id: messageIds },
      ...{ user_id: people, member_id: people },
      person: [own.member.id, own.member.username],
      id: idsOf(name) ?? people,
      bot_id: [/^DELETE .*\{bot_id\}$|\/transfer$/.test(name) ? doomed.id : spare.id, foreign.bot.id],
      // Names no bot from the data that must not change. Any person may start or block any bot, which would change this
      // data.
      username: [...newNames.map(() => own.bot.username), ...newNames],
      ...{ post: posts, post_id: posts, external_id: posts },
      emoji: ['❤', '👍', '🔥', '🎲', 'x'],
      parse_mode: ['HTML', 'MarkdownV2', 'Markdown', ''],
      ...{ file_id: media, media, photo: media, video: media, audio: media, document: media },
      ...{ animation: media, voice: media, video_note: media, sticker: media },
      name: ['ann'],
      ...(/Sticker\w/.test(name) ? stickerHints(name) : {}),
      // Contains no invite link to the group that must not change, because any person could join the group by this
      // link.
      ...{ invite_link: own.links, link: own.links, question: ['a question'], options: ['an option'] },
      ...{ latitude: [1, '2.5'], longitude: [1, -3], title: ['a title'], address: ['an address'] },
      ...{ phone_number: ['+123'], first_name: ['ann'] },
      text: ['words', '<b>bold</b>', '*bold* \\.', '👍'],
      ...{ description: ['a description'], short_description: ['short'], command: ['a', 'b_2'] },
      ...{ callback_query_id: ['12345678901004'], callback_data: ['a'], data: ['a'] },
      language_code: ['ru', 'en', 'kk', ''],
      url: ['https://example.org/'],
      timeout: [0],
    };
  }

  async function mend(): Promise<void> {
    const app = (verb: string, path: string, body: object) =>
      resultOf(answered(() => service.app(own.owner, verb, path, body)));
    await app('POST', `/api/bots/${own.bot.username}/start`, {});
    for (const chat of [own.group, own.channel]) {
      await app('PUT', `/api/chats/${chat}/members/${own.bot.id}`, { status: 'administrator', rights });
      const unbanned = { chat_id: chat, user_id: own.member.id };
      await resultOf(answered(() => service.bot(own.bot, 'unbanChatMember', unbanned)));
      await app('PUT', `/api/chats/${chat}/members/${own.member.id}`, { status: 'member' });
    }
    await givePictures();
    await forwarded(masters);
  }

  const people = [own.owner, own.member, foreign.owner, foreign.member, victim, leaver];
  const tokens = [own.bot, foreign.bot, ...people].map(({ token }) => token);
  return {
    callers: { bot: own.bot.token, user: own.owner.token, admin: service.adminToken },
    tokenId,
    secrets: [...tokens, service.adminToken].map((token) => token.slice(token.indexOf(':') + 1)),
    hints,
    async watched() {
      await forwarded(masters);
      return observe(service, foreign);
    },
    mend,
    close: () => {
      for (const master of masters) master.disconnect();
    },
  };
}
