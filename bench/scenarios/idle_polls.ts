/** Measures `sendMessage` while many bots have idle long polls, compared with `sendMessage` without them. */
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, makePair, type Pair } from '../../src/loadtest/client.js';
import { once } from '../../src/loadtest/series.js';
import { type Message, makeBots, makePeople, text } from '../service/population.js';
import type { Service } from '../service/service.js';
import { ask, type Scenario, type Side } from './scenario.js';

/** The timeout of the long polls, in seconds. It is longer than any round of a measurement. */
const poll_s = 50;

/** Opens one long poll per bot. The returned function aborts the polls, and throws if one of them had already ended. */
async function openPolls(
  { front, signal }: Service,
  tokens: readonly string[],
): Promise<() => Promise<void>> {
  let ended = 0;
  let waiting = 0;
  const polls = tokens.map((token) => {
    const poll = request(`${front.baseUrl}/bot${token}/getUpdates?timeout=${poll_s}`, {
      agent: false,
      signal,
    });
    poll.on('socket', (socket) => socket.once('connect', () => waiting++));
    poll.on('response', () => ended++);
    poll.on('error', () => ended++);
    poll.end();
    return poll;
  });
  while (waiting < tokens.length) await sleep(10, undefined, { signal });
  await sleep(100);
  return async () => {
    const soon = ended;
    for (const poll of polls) poll.destroy();
    expect(soon === 0, `${soon} of ${tokens.length} idle polls ended by themselves`);
  };
}

const sending = (service: Service, { bot, user }: Pair, attend?: Side['attend']): Side => {
  const target = service.front;
  const path = `/bot${bot.token}/sendMessage`;
  const body = JSON.stringify({ chat_id: user.id, text });
  return {
    target,
    series: { origin: target.baseUrl, calls: [{ verb: 'POST', path, body }], rows: once },
    async verify() {
      const { result } = await ask<{ result: Message }>(target, path, { body });
      expect(result.text === text && result.chat.id === user.id, 'sendMessage returned another message');
    },
    ...(attend ? { attend } : {}),
  };
};

export const idlePolls: Scenario = {
  name: 'idle_polls',
  title: 'sendMessage with many idle long polls',
  proof: '',
  goal: null,
  versions: 1,
  async prepare(service, _watch, sizes) {
    const pair = await makePair(service.front.baseUrl, service.adminToken, 'beside_polls');
    const owners = await makePeople(service, 'poll_owner', Math.ceil(sizes.polls / 100));
    const tokens = await makeBots(service, owners, 'idle', sizes.polls);
    return {
      base: sending(service, pair),
      subject: sending(service, pair, () => openPolls(service, tokens)),
      labels: ['alone', `${sizes.polls.toLocaleString('en')} idle polls`],
    };
  },
};
