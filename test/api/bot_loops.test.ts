import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { type Eviction, openEviction } from '../interface/eviction.js';
import { makeCertificate } from '../support/certificates.js';
import { type Receiver, startReceiver } from '../support/receivers.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

const certificate = makeCertificate({ names: ['localhost'], addresses: ['127.0.0.1'] });
const photo = (name: string) => ({ type: 'photo', media: `https://example.com/${name}.png` });

let service: Service;
let eviction: Eviction;
let owner: TestUser;
let a: TestBot;
let b: TestBot;
let group: number;
let channel: number;

onSharedService(async (running) => {
  service = running;
  eviction = await openEviction(service);
});
afterAll(async () => {
  await eviction?.close();
});
beforeEach(async () => {
  owner = await service.newUser('olga');
  a = await service.newBot(owner, 'first');
  b = await service.newBot(owner, 'second');
  group = await service.newGroup(owner, 'Echoes', [a, b]);
  const made = { type: 'channel', title: 'News' };
  ({ id: channel } = await resultOf(service.app(owner, 'POST', '/api/chats', made)));
  const rights = { can_post_messages: true, can_pin_messages: true, can_edit_messages: true };
  for (const { id } of [a, b]) {
    const path = `/api/chats/${channel}/members/${id}`;
    await resultOf(service.app(owner, 'PUT', path, { status: 'administrator', rights }));
  }
  for (const bot of [a, b]) await received(bot, ({ my_chat_member: it }) => it?.chat.id === channel);
});

interface Message {
  readonly message_id: number;
  readonly from: { readonly id: number };
  readonly text?: string;
  readonly chat: { readonly id: number };
  readonly pinned_message?: object;
}
interface Update {
  readonly update_id: number;
  readonly message?: Message;
  readonly edited_message?: Message;
  readonly channel_post?: Message;
  readonly edited_channel_post?: Message;
  readonly callback_query?: { readonly data: string };
  readonly my_chat_member?: { readonly chat: { readonly id: number } };
}

const call = (bot: TestBot, method: string, params: object = {}) =>
  resultOf(service.bot(bot, method, { chat_id: group, ...params }));
const say = (text: string, chat = group): Promise<Message> =>
  resultOf(service.app(owner, 'POST', `/api/chats/${chat}/messages`, { text }));

/**
 * Polls and confirms updates until an update satisfies `last`. Returns all updates received so far. The updates of one
 * chat arrive in order, so no earlier update of that chat is missing.
 */
async function received(bot: TestBot, last: (update: Update) => boolean): Promise<Update[]> {
  const all: Update[] = [];
  for (let offset = 0; !all.some(last); ) {
    const updates: Update[] = await call(bot, 'getUpdates', { offset, timeout: 20, chat_id: undefined });
    expect(updates.length, 'an update within 20 s').toBeGreaterThan(0);
    all.push(...updates);
    offset = (all.at(-1)?.update_id ?? 0) + 1;
    await call(bot, 'getUpdates', { offset, chat_id: undefined, limit: 1 });
  }
  return all;
}
const said = (text: string) => (update: Update) =>
  update.message?.text === text || update.channel_post?.text === text;

const texts = async (chat = group): Promise<Array<string | undefined>> =>
  (await itemsOf(service.app(owner, 'GET', `/api/chats/${chat}/messages?limit=100`)))
    .flatMap(({ text }: Message) => (text === undefined ? [] : [text]))
    .reverse();

test("if two echo bots poll in one group, each bot answers a person's message once", async () => {
  /** Answers every message, like a bot that filters nothing. */
  const echo = async (bot: TestBot, until: string) => {
    const shown: Array<string | undefined> = [];
    for (let offset = 0; !shown.includes(until); ) {
      const updates: Update[] = await call(bot, 'getUpdates', { offset, timeout: 20, chat_id: undefined });
      for (const { update_id, message } of updates) {
        offset = update_id + 1;
        if (message?.text === undefined) continue;
        shown.push(message.text);
        if (message.text !== until) await call(bot, 'sendMessage', { text: `re ${message.text}` });
        // Ends the test even if the bots answer each other endlessly.
        if (shown.length > 20) return shown;
      }
    }
    return shown;
  };
  const echoes = [echo(a, 'stop'), echo(b, 'stop')];
  await say('hello');
  await expect.poll(texts).toEqual(['hello', 're hello', 're hello']);
  await say('stop');
  for (const shown of echoes) expect(await shown).toEqual(['hello', 'stop']);
  expect(await texts()).toEqual(['hello', 're hello', 're hello', 'stop']);
});

async function sendAll(bot: TestBot): Promise<number> {
  const { message_id } = await call(bot, 'sendMessage', { text: 'a text' });
  await call(bot, 'sendMediaGroup', { media: [photo('x'), photo('y')] });
  await call(bot, 'forwardMessage', { from_chat_id: group, message_id });
  await call(bot, 'forwardMessages', { from_chat_id: group, message_ids: [message_id, message_id + 1] });
  await call(bot, 'copyMessage', { from_chat_id: group, message_id });
  await call(bot, 'copyMessages', { from_chat_id: group, message_ids: [message_id] });
  await call(bot, 'editMessageText', { message_id, text: 'another text' });
  return message_id;
}

test.each(['hot', 'cold'])('in a %s group, a bot does not receive messages of other bots', async (state) => {
  if (state === 'cold') {
    await say('before');
    for (const bot of [a, b]) await received(bot, said('before'));
    const evicted = await eviction.evict(new Set([`${group}`, `${a.id}`, `${b.id}`]));
    expect(evicted).toBeGreaterThan(3);
  }
  const message_id = await sendAll(a);
  await say('the end');
  expect((await received(b, said('the end'))).map(({ message }) => message?.text)).toEqual(['the end']);
  await received(a, said('the end'));

  // When the owner edits a message of bot `a`, bot `a` gets an update about the edit, but bot `b` does not.
  const path = `/api/chats/${group}/messages/${message_id}`;
  await expect
    .poll(async () => (await service.app(owner, 'PATCH', path, { text: 'by a person' })).status)
    .toBe(200);
  await say('again');
  const [edit, again] = await received(a, said('again'));
  expect(edit?.edited_message).toMatchObject({ message_id, text: 'by a person' });
  expect(again?.message?.text).toBe('again');
  expect((await received(b, said('again'))).map(({ message }) => message?.text)).toEqual(['again']);
});

test('a bot receives service messages in groups, and channel posts by other bots', async () => {
  const { message_id } = await say('pin me');
  await resultOf(
    service.app(owner, 'PUT', `/api/chats/${group}/members/${a.id}`, {
      ...{ status: 'administrator', rights: { can_pin_messages: true } },
    }),
  );
  await resultOf(service.app(owner, 'POST', `/api/chats/${group}/pin`, { message_id }));
  for (const bot of [a, b]) await received(bot, ({ message }) => message?.pinned_message !== undefined);
  await call(a, 'sendMessage', { chat_id: channel, text: 'a post' });
  await received(b, said('a post'));
});

test('if two bots pin a message after every pin by another member, each bot stops after one pin', async () => {
  for (const { id } of [a, b])
    await resultOf(
      service.app(owner, 'PUT', `/api/chats/${group}/members/${id}`, {
        ...{ status: 'administrator', rights: { can_pin_messages: true } },
      }),
    );
  const { message_id } = await say('one');
  await say('two');
  const own = { [a.id]: message_id, [b.id]: message_id + 1 };
  /** Makes the bot repeat its pin whenever it gets an update about another member's pin. */
  const insist = async (bot: TestBot) => {
    let pins = 0;
    for (let offset = 0, ended = false; !ended; ) {
      const updates: Update[] = await call(bot, 'getUpdates', { offset, timeout: 20, chat_id: undefined });
      for (const { update_id, message } of updates) {
        offset = update_id + 1;
        ended ||= message?.text === 'stop' || pins > 10;
        if (message?.pinned_message === undefined || message.from.id === bot.id) continue;
        pins++;
        await call(bot, 'pinChatMessage', { message_id: own[bot.id] });
      }
    }
    return pins;
  };
  const both = [insist(a), insist(b)];
  await resultOf(service.app(owner, 'POST', `/api/chats/${group}/pin`, { message_id: message_id + 1 }));
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  await say('stop');
  for (const pins of both) expect(await pins).toBe(1);
});

/** Both bots have webhooks. Their receiver answers each update with a message to the chat of the update. */
let receiver: Receiver | undefined;
let pushed: Map<string, Update[]>;
async function hook(): Promise<void> {
  pushed = new Map([a, b].map(({ id }) => [`/${id}`, []]));
  receiver = await startReceiver(certificate, (request, response, body) => {
    const update: Update = JSON.parse(body.toString());
    pushed.get(request.url ?? '')?.push(update);
    const chat_id = messageOf(update)?.chat.id ?? group;
    response.end(JSON.stringify({ method: 'sendMessage', chat_id, text: `re ${shown(update)}` }));
  });
  for (const bot of [a, b]) {
    const url = `https://127.0.0.1:${receiver.port}/${bot.id}`;
    await call(bot, 'setWebhook', { url, certificate: certificate.cert, chat_id: undefined });
  }
}
afterEach(async () => {
  await receiver?.close();
  receiver = undefined;
});
const messageOf = (update: Update) =>
  update.message ?? update.edited_message ?? update.channel_post ?? update.edited_channel_post;
const shown = (update: Update) => {
  if (update.callback_query) return update.callback_query.data;
  const message = messageOf(update);
  return message?.pinned_message ? 'a pin' : message?.text;
};
const pushedTo = ({ id }: TestBot) => (pushed.get(`/${id}`) ?? []).map(shown);
const calm = async () => {
  for (const bot of [a, b])
    await expect
      .poll(async () => (await call(bot, 'getWebhookInfo', { chat_id: undefined })).pending_update_count)
      .toBe(0);
};

test("if two webhook bots share a group, each bot answers a person's message once", async () => {
  await hook();
  await say('hello');
  await expect.poll(texts).toEqual(['hello', 're hello', 're hello']);
  await say('bye');
  await expect.poll(async () => (await texts()).length).toBe(6);
  await calm();
  expect([pushedTo(a), pushedTo(b)]).toEqual([
    ['hello', 'bye'],
    ['hello', 'bye'],
  ]);
  expect(await texts()).toHaveLength(6);
});

test('a method call in a webhook answer does not run if a bot caused the update', async () => {
  await hook();
  const { message_id } = await say('a word of a person', channel);
  const answers = ['re a word of a person', 're a word of a person'];
  await expect.poll(() => texts(channel)).toHaveLength(3);
  // Each bot's webhook received the other bot's message and answered it with a method call. Petrel did not run these
  // calls.
  for (const bot of [a, b])
    await expect.poll(() => pushedTo(bot)).toEqual(['a word of a person', answers[0]]);
  await calm();
  expect((await texts(channel)).slice(1)).toEqual(answers);

  // Service messages that a bot caused reach all bots of the group, including that bot.
  await call(a, 'pinChatMessage', { chat_id: channel, message_id });
  await expect.poll(() => [pushedTo(a).at(-1), pushedTo(b).at(-1)]).toEqual(['a pin', 'a pin']);
  await call(a, 'editMessageText', { chat_id: channel, message_id, text: 'reworded by a bot' });
  await expect.poll(() => pushedTo(b).at(-1)).toBe('reworded by a bot');
  await calm();
  expect(await texts(channel)).toHaveLength(3);

  // Petrel runs a method call in the webhook answer to a button press, even if a bot sent the button, because a person
  // pressed it.
  const reply_markup = { inline_keyboard: [[{ text: 'Go', callback_data: 'pressed' }]] };
  const button = await call(a, 'sendMessage', { text: 'press', reply_markup });
  const path = `/api/chats/${group}/messages/${button.message_id}/callback`;
  await resultOf(service.app(owner, 'POST', path, { data: 'pressed' }));
  await expect.poll(texts).toEqual(['press', 're pressed']);
});
