/**
 * Measures `forwardMessages` with a hundred messages, compared with `forwardMessage` with one. The result shows how
 * much a batch saves.
 */

import { limits } from '../../src/limits.js';
import { expect, makePair } from '../../src/loadtest/client.js';
import { once } from '../../src/loadtest/series.js';
import { makeMessages, text } from '../service/population.js';
import { ask, type Scenario, type Side } from './scenario.js';

export const forwardMessages: Scenario = {
  name: 'forwardMessages',
  title: 'forwardMessages of a hundred',
  proof: '',
  goal: null,
  versions: 0,
  // Each call writes a hundred messages, so further connections would only queue.
  connectionsMax: 8,
  async prepare(service) {
    const pair = await makePair(service.front.baseUrl, service.adminToken, 'forward');
    const { bot, user } = pair;
    const message_ids = await makeMessages(service, pair, user.id, text, limits.messages_batch_max);
    const chat = { chat_id: user.id, from_chat_id: user.id };
    const target = service.front;
    const side = (method: string, ids: object, count: number): Side => {
      const path = `/bot${bot.token}/${method}`;
      const body = JSON.stringify({ ...chat, ...ids });
      return {
        target,
        series: { origin: target.baseUrl, calls: [{ verb: 'POST', path, body }], rows: once },
        async verify() {
          const { result } = await ask<{ result: unknown }>(target, path, { body });
          const made = [result].flat() as Array<{ message_id: number }>;
          expect(made.length === count, `${method} made ${made.length} messages instead of ${count}`);
          expect(
            made.every(({ message_id }, i) => message_id === (made[0]?.message_id ?? 0) + i),
            `${method} returned ids that are not consecutive`,
          );
        },
      };
    };
    return {
      base: side('forwardMessage', { message_id: message_ids[0] }, 1),
      subject: side('forwardMessages', { message_ids }, message_ids.length),
      labels: ['of one', `of ${message_ids.length}`],
    };
  },
};
