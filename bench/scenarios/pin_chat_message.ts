/** For goal P2: measures replacing a pinned message, compared with a minimal server that calls the same script. */
import { expect, makePair, type Pair } from '../../src/loadtest/client.js';
import type { Series } from '../../src/loadtest/series.js';
import { type Message, makeMessages, makePeople, openChats, text } from '../service/population.js';
import type { Service, Target } from '../service/service.js';
import { labels } from './one_chat.js';
import { ask, type Scenario, type Side } from './scenario.js';

const pinned = { chats: 10, messages: 50 };

/**
 * Pins two messages in each chat, one after the other. Checks that the second message is pinned at the end, and that
 * the bot got an update about each pin.
 */
async function verifyPins(
  service: Service,
  target: Target,
  { bot }: Pair,
  probes: ReadonlyMap<number, readonly number[]>,
): Promise<void> {
  const method = `/bot${bot.token}`;
  for (const [chat_id, ids] of probes) {
    for (const message_id of ids) {
      const body = { chat_id, message_id };
      const { result } = await ask<{ result: boolean }>(target, `${method}/pinChatMessage`, { body });
      expect(result === true, 'pinChatMessage did not return true');
    }
    const chat = await ask<{ result: { pinned_message?: Message } }>(service.front, `${method}/getChat`, {
      body: { chat_id },
    });
    const shown = chat.result.pinned_message?.message_id;
    expect(shown === ids.at(-1), `message ${ids.at(-1)} was pinned and ${shown} is shown`);
  }
  // Confirms the updates that the bot gets about its own pins. Unread updates would fill its queue and become dead
  // letters.
  const { result } = await ask<{ result: ReadonlyArray<{ message?: { pinned_message?: Message } }> }>(
    service.front,
    `${method}/getUpdates?offset=-1`,
  );
  const newest = result.at(-1)?.message?.pinned_message?.message_id;
  expect(newest === [...probes.values()].at(-1)?.at(-1), `the newest update is about message ${newest}`);
}

export const pinChatMessage: Scenario = {
  name: 'pinChatMessage',
  title: 'pinChatMessage, replacing the pinned message',
  proof: 'P2',
  goal: { share: 0.8 },
  // The versions that one call assigns: one for the service message and one for the pin.
  versions: 2,
  timed: true,
  async prepare(service) {
    const pair = await makePair(service.front.baseUrl, service.adminToken, 'pin');
    const { bot } = pair;
    const people = await makePeople(service, 'pin_person', pinned.chats);
    await openChats(service, pair, people);
    const inChats: Array<{ readonly chat: number; readonly ids: readonly number[] }> = [];
    for (const { id: chat } of people)
      inChats.push({ chat, ids: await makeMessages(service, pair, chat, text, pinned.messages + 2) });
    const probes = new Map(inChats.map(({ chat, ids }) => [chat, ids.slice(pinned.messages)]));
    const rows: Series['rows'] = Array.from({ length: pinned.messages }, (_, i) =>
      inChats.map(({ chat, ids }) => [String(chat), String(ids[i])]),
    ).flat();
    const path = `/bot${bot.token}/pinChatMessage`;
    const profile = { id: bot.id, bot: 1 as const, n: bot.name, u: bot.username };
    const floor = await service.startFloor({ kind: 'pin', profile });
    const side = (target: Target): Side => ({
      target,
      series: {
        origin: target.baseUrl,
        calls: [{ verb: 'POST', path, body: '{"chat_id":{1},"message_id":{2}}' }],
        rows,
      },
      verify: () => verifyPins(service, target, pair, probes),
    });
    return { base: side(floor), subject: side(service.front), labels };
  },
};
