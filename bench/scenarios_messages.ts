/** P2: sending, editing and pinning beside the same script on a bare server. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { limits } from '../src/limits.js';
import { call, expect, makePair, type Pair } from './client.js';
import { type Message, makeMessages, makePeople, openChats, text } from './population.js';
import { ask, type Scenario, type Side } from './scenario.js';
import { once, type Series } from './series.js';
import type { Site, Target } from './site.js';

const labels = ['floor', 'service'] as const;
const recent = (seconds: number | undefined) => Math.abs(Date.now() / 1000 - (seconds ?? 0)) < 60;

/** The newest messages as the user of the chat sees them, newest first. */
const historyOf = (site: Site, { bot, user }: Pair, limit: number): Promise<Message[]> =>
  call(`${site.front.baseUrl}/api/chats/${bot.id}/messages?limit=${limit}`, { token: user.token });

/** Sends a few messages one after another; the user must find them, in order and with what was answered. */
async function verifySends(site: Site, target: Target, pair: Pair, path: string): Promise<void> {
  const { bot, user } = pair;
  const sent: Message[] = [];
  for (let i = 0; i < 3; i++) {
    const body = { chat_id: user.id, text };
    const { result } = await ask<{ result: Message }>(target, path, { body });
    expect(result.text === text, 'sendMessage answers with another text');
    expect(result.from.id === bot.id && result.chat.id === user.id, 'sendMessage names others');
    expect(recent(result.date), `sendMessage is dated ${result.date}`);
    sent.push(result);
  }
  const history = await historyOf(site, pair, sent.length);
  for (const [i, message] of sent.entries()) {
    const seen = history[sent.length - 1 - i];
    const previous = sent[i - 1]?.message_id ?? message.message_id - 1;
    expect(message.message_id === previous + 1, 'message ids do not go up by one');
    expect(
      seen?.message_id === message.message_id &&
        seen.text === text &&
        seen.date === message.date &&
        seen.from.id === bot.id,
      `message ${message.message_id} is not in the history`,
    );
  }
}

/** What of a message does not differ from call to call. */
const shapeOf = ({ message_id: _, date: __, edit_date, text: ___, ...rest }: Message) => ({
  ...rest,
  edited: edit_date !== undefined,
});

export const sendMessage: Scenario = {
  name: 'sendMessage',
  proof: 'P2',
  goal: { share: 0.8, redisMost: 25 },
  versions: 1,
  async prepare(site) {
    const pair = await makePair(site.front.baseUrl, site.adminToken, 'send');
    const { bot, user } = pair;
    const path = `/bot${bot.token}/sendMessage`;
    const body = JSON.stringify({ chat_id: user.id, text });
    const { result } = await ask<{ result: Message }>(site.front, path, { body });
    const { from, chat } = result;
    const floor = await site.startFloor({ kind: 'send', bot: bot.id, user: user.id, from, chat });
    const bare = await ask<{ result: Message }>(floor, path, { body });
    expect(isDeepStrictEqual(shapeOf(bare.result), shapeOf(result)), 'the floor answers with another shape');
    const side = (target: Target): Side => ({
      target,
      series: { origin: target.baseUrl, calls: [{ verb: 'POST', path, body }], rows: once },
      verify: () => verifySends(site, target, pair, path),
    });
    return { base: side(floor), subject: side(site.front), labels };
  },
};

let edits = 0;

/** Edits messages that no load touches; the user must find what was answered. */
async function verifyEdits(
  site: Site,
  target: Target,
  pair: Pair,
  path: string,
  probes: readonly number[],
): Promise<void> {
  // A message can be edited once a second: the load before this and the one after must not meet each other's.
  await sleep(limits.edit_interval_ms_min);
  const words = `edit ${++edits} of ${pair.bot.id}`;
  for (const message_id of probes) {
    const body = { chat_id: pair.user.id, message_id, text: words };
    const { result } = await ask<{ result: Message }>(target, path, { body });
    const { id } = result.chat;
    expect(result.message_id === message_id && id === pair.user.id, 'editMessageText answers with another');
    expect(result.text === words, 'editMessageText answers with another text');
    expect(recent(result.edit_date), `editMessageText is dated ${result.edit_date}`);
  }
  const history = await historyOf(site, pair, probes.length);
  for (const { message_id, text: shown, edit_date } of history)
    expect(shown === words && recent(edit_date), `message ${message_id} is not shown as it was edited`);
}

export const editMessageText: Scenario = {
  name: 'editMessageText',
  proof: 'P2',
  goal: { share: 0.8 },
  versions: 1,
  async prepare(site, _watch, { messages }) {
    const pair = await makePair(site.front.baseUrl, site.adminToken, 'edit');
    const { bot, user } = pair;
    const rows = (await makeMessages(site, pair, user.id, text, messages)).map((id) => [String(id)]);
    const probes = await makeMessages(site, pair, user.id, text, 4);
    const path = `/bot${bot.token}/editMessageText`;
    const probe = (words: string) => ({ body: { chat_id: user.id, message_id: probes[0], text: words } });
    const { result } = await ask<{ result: Message }>(site.front, path, probe('one'));
    const { from, chat } = result;
    const floor = await site.startFloor({ kind: 'edit', bot: bot.id, user: user.id, from, chat });
    await sleep(limits.edit_interval_ms_min);
    const bare = await ask<{ result: Message }>(floor, path, probe('two'));
    expect(isDeepStrictEqual(shapeOf(bare.result), shapeOf(result)), 'the floor answers with another shape');
    const body = `{"chat_id":${user.id},"message_id":{1},"text":${JSON.stringify(`${text} {pass} {salt}`)}}`;
    const side = (target: Target): Side => ({
      target,
      series: { origin: target.baseUrl, calls: [{ verb: 'POST', path, body }], rows },
      verify: () => verifyEdits(site, target, pair, path, probes),
    });
    return { base: side(floor), subject: side(site.front), labels };
  },
};

/** Chats that pins go through, and messages in each. */
const pinned = { chats: 10, messages: 50 };

/** Pins two messages after one another in each chat; the second must be the pinned one. Then the bot has heard of all. */
async function verifyPins(
  site: Site,
  target: Target,
  { bot }: Pair,
  probes: ReadonlyMap<number, readonly number[]>,
): Promise<void> {
  const method = `/bot${bot.token}`;
  for (const [chat_id, ids] of probes) {
    for (const message_id of ids) {
      const body = { chat_id, message_id };
      const { result } = await ask<{ result: boolean }>(target, `${method}/pinChatMessage`, { body });
      expect(result === true, 'pinChatMessage does not answer with true');
    }
    const chat = await ask<{ result: { pinned_message?: Message } }>(site.front, `${method}/getChat`, {
      body: { chat_id },
    });
    const shown = chat.result.pinned_message?.message_id;
    expect(shown === ids.at(-1), `message ${ids.at(-1)} was pinned and ${shown} is shown`);
  }
  // A bot hears of its own pins. What nobody asks for would fill its queue, and be buried beyond its bounds.
  const { result } = await ask<{ result: ReadonlyArray<{ message?: { pinned_message?: Message } }> }>(
    site.front,
    `${method}/getUpdates?offset=-1`,
  );
  const newest = result.at(-1)?.message?.pinned_message?.message_id;
  expect(newest === [...probes.values()].at(-1)?.at(-1), `the newest update tells of ${newest}`);
}

export const pinChatMessage: Scenario = {
  name: 'pinChatMessage',
  proof: 'P2',
  goal: { share: 0.8 },
  // The service message and the pin.
  versions: 2,
  async prepare(site) {
    const pair = await makePair(site.front.baseUrl, site.adminToken, 'pin');
    const { bot } = pair;
    const people = await makePeople(site, 'pin_person', pinned.chats);
    await openChats(site, pair, people);
    const inChats: Array<{ readonly chat: number; readonly ids: readonly number[] }> = [];
    for (const { id: chat } of people)
      inChats.push({ chat, ids: await makeMessages(site, pair, chat, text, pinned.messages + 2) });
    const probes = new Map(inChats.map(({ chat, ids }) => [chat, ids.slice(pinned.messages)]));
    const rows: Series['rows'] = Array.from({ length: pinned.messages }, (_, i) =>
      inChats.map(({ chat, ids }) => [String(chat), String(ids[i])]),
    ).flat();
    const path = `/bot${bot.token}/pinChatMessage`;
    const profile = { id: bot.id, bot: 1 as const, n: bot.name, u: bot.username };
    const floor = await site.startFloor({ kind: 'pin', profile });
    const side = (target: Target): Side => ({
      target,
      series: {
        origin: target.baseUrl,
        calls: [{ verb: 'POST', path, body: '{"chat_id":{1},"message_id":{2}}' }],
        rows,
      },
      verify: () => verifyPins(site, target, pair, probes),
    });
    return { base: side(floor), subject: side(site.front), labels };
  },
};
