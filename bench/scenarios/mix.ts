/**
 * Measures a mix of calls like real traffic: mostly sends and edits by bots, some messages and reactions by people, and
 * some reads. `shares.ts` defines the share of each call. Each row of values says to which call it belongs, so that wrk
 * and autocannon send the same requests.
 */
import { call, expect, inParallel, makePair } from '../../src/loadtest/client.js';
import type { Call } from '../../src/loadtest/series.js';
import { shares } from '../../src/loadtest/shares.js';
import {
  type Message,
  makeMessages,
  makePeople,
  makePosts,
  openChats,
  type Person,
  text,
} from '../service/population.js';
import { ask, type Scenario } from './scenario.js';

type Kind = keyof typeof shares;
const kinds = Object.keys(shares) as Kind[];
const people_count = 20;
/**
 * A call with a share of 1 % has this many rows. One pass over all rows takes longer than a second, the minimum time
 * between two edits of a message.
 */
const per_share = 600;
const heart = { emoji: '❤' };

/** Shuffles the rows. The order is the same in each run. */
function shuffled<T>(values: readonly T[]): T[] {
  const mixed = [...values];
  let state = 1;
  for (let i = mixed.length - 1; i > 0; i--) {
    state = (state * 48_271) % 2_147_483_647;
    const j = state % (i + 1);
    [mixed[i], mixed[j]] = [mixed[j] as T, mixed[i] as T];
  }
  return mixed;
}

export const mix: Scenario = {
  name: 'mix',
  title: `a mix: ${kinds.map((kind) => `${kind} ${shares[kind]} %`).join(', ')}`,
  proof: '',
  goal: null,
  versions: 0,
  async prepare(service, _watch, sizes) {
    const target = service.front;
    const pair = await makePair(target.baseUrl, service.adminToken, 'mixed');
    const people = await makePeople(service, 'mixed_person', people_count);
    await openChats(service, pair, people);
    const { posts } = await makePosts(service, people[0] as Person, sizes.posts);
    const edited = Math.max(1, Math.ceil((shares.editMessageText * per_share) / people_count));
    const messages = await inParallel(people_count, 4, (i) =>
      makeMessages(service, pair, (people[i] as Person).id, text, edited + 20),
    );
    const method = `/bot${pair.bot.token}`;
    const sent = JSON.stringify(text);
    // The placeholders are columns of the row: {2} is a person's id, {3} that person's token, {4} a message in that
    // person's chat with the bot, {5} a post.
    const calls: Record<Kind, Call> = {
      sendMessage: { verb: 'POST', path: `${method}/sendMessage`, body: `{"chat_id":{2},"text":${sent}}` },
      editMessageText: {
        verb: 'POST',
        path: `${method}/editMessageText`,
        body: `{"chat_id":{2},"message_id":{4},"text":${JSON.stringify(`${text} {pass} {salt}`)}}`,
      },
      personWrites: {
        verb: 'POST',
        path: `/api/chats/${pair.bot.id}/messages`,
        token: '{3}',
        body: `{"text":${sent}}`,
      },
      react: { verb: 'POST', path: '/api/posts/{5}/reactions', token: '{3}', body: JSON.stringify(heart) },
      getMe: { verb: 'GET', path: `${method}/getMe` },
      sendChatAction: {
        verb: 'POST',
        path: `${method}/sendChatAction`,
        body: '{"chat_id":{2},"action":"typing"}',
      },
      history: { verb: 'GET', path: `/api/chats/${pair.bot.id}/messages?limit=20`, token: '{3}' },
      pinChatMessage: {
        verb: 'POST',
        path: `${method}/pinChatMessage`,
        body: '{"chat_id":{2},"message_id":{4}}',
      },
      getChat: { verb: 'POST', path: `${method}/getChat`, body: '{"chat_id":{2}}' },
    };
    const rows = kinds.flatMap((kind, number) =>
      Array.from({ length: shares[kind] * per_share }, (_, i) => {
        const at = i % people_count;
        const { id, token } = people[at] as Person;
        const own = messages[at] as number[];
        const nth = Math.floor(i / people_count);
        const message = kind === 'pinChatMessage' ? own[edited + (nth % 20)] : own[nth % edited];
        return [number, id, token, message, posts[i % posts.length]?.external_id].map(String);
      }),
    );
    const forget = async () => {
      // Confirms the bot's updates. Unread updates would fill its queue.
      const [last] = await call<Array<{ update_id: number }>>(
        `${target.baseUrl}${method}/getUpdates?offset=-1`,
      );
      if (last) await call(`${target.baseUrl}${method}/getUpdates?offset=${last.update_id + 1}`);
    };
    return {
      labels: ['', 'service'],
      subject: {
        target,
        series: {
          origin: target.baseUrl,
          calls: kinds.map((kind) => calls[kind]),
          byRow: true,
          rows: shuffled(rows),
        },
        async verify() {
          await forget();
          const [person] = people as [Person];
          const body = { chat_id: person.id, text };
          const { result } = await ask<{ result: Message }>(target, `${method}/sendMessage`, { body });
          const path = `/api/chats/${pair.bot.id}/messages?limit=1`;
          const seen = await ask<{ result: { items: Message[] } }>(target, path, { token: person.token });
          expect(
            seen.result.items[0]?.message_id === result.message_id && seen.result.items[0]?.text === text,
            'the newest message of a chat is not the message that was sent',
          );
        },
      },
    };
  },
};
