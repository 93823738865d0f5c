/** For goal P8: measures how the cost of a send grows with the number of chats. */
import { expect, inParallel, makePair } from '../../src/loadtest/client.js';
import { type Message, openManyChats, text } from '../service/population.js';
import { ask, type Scenario, type Side } from './scenario.js';

const few = 1_000;

export const manyChats: Scenario = {
  name: 'chats',
  title: 'sendMessage to many chats',
  proof: 'P8',
  goal: { growth: 1.1, of: 'server' },
  versions: 1,
  async prepare(service, _watch, sizes) {
    const pair = await makePair(service.front.baseUrl, service.adminToken, 'grow');
    const path = `/bot${pair.bot.token}/sendMessage`;
    const target = service.front;
    const chats = await openManyChats(service, pair, sizes.chats);
    const send = async (chat_id: number | undefined) => {
      const { result } = await ask<{ result: Message }>(target, path, { body: { chat_id, text } });
      expect(result.chat.id === chat_id && result.text === text, 'sendMessage returned another chat');
    };
    // The first message of a chat loads the chat into Redis.
    await inParallel(chats.length, 48, (i) => send(chats[i]));
    const side = (ids: readonly number[]): Side => ({
      target,
      series: {
        origin: target.baseUrl,
        calls: [{ verb: 'POST', path, body: `{"chat_id":{1},"text":${JSON.stringify(text)}}` }],
        rows: ids.map((id) => [String(id)]),
      },
      async verify() {
        for (const at of [0, 0.5]) await send(ids[Math.floor(at * ids.length)]);
      },
    });
    const name = (count: number) => `to ${count.toLocaleString('en')}`;
    const base = chats.slice(0, few);
    return { base: side(base), subject: side(chats), labels: [name(base.length), name(chats.length)] };
  },
};
