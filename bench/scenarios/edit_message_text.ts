/**
 * For goal P2: measures `editMessageText` on many messages, compared with a minimal server that calls the same script.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { limits } from '../../src/limits.js';
import { expect, makePair, type Pair } from '../../src/loadtest/client.js';
import { type Message, makeMessages, text } from '../service/population.js';
import type { Service, Target } from '../service/service.js';
import { historyOf, labels, recent, shapeOf } from './one_chat.js';
import { ask, type Scenario, type Side } from './scenario.js';

let edits = 0;

async function verifyEdits(
  service: Service,
  target: Target,
  pair: Pair,
  path: string,
  probes: readonly number[],
): Promise<void> {
  // Waits because a message can be edited only once a second, and the previous load may have edited these messages.
  await sleep(limits.edit_interval_ms_min);
  const words = `edit ${++edits} of ${pair.bot.id}`;
  for (const message_id of probes) {
    const body = { chat_id: pair.user.id, message_id, text: words };
    const { result } = await ask<{ result: Message }>(target, path, { body });
    const { id } = result.chat;
    expect(
      result.message_id === message_id && id === pair.user.id,
      'editMessageText returned another message',
    );
    expect(result.text === words, 'editMessageText returned another text');
    expect(recent(result.edit_date), `editMessageText returned the date ${result.edit_date}`);
  }
  const history = await historyOf(service, pair, probes.length);
  for (const { message_id, text: shown, edit_date } of history)
    expect(shown === words && recent(edit_date), `message ${message_id} does not show its edit`);
}

export const editMessageText: Scenario = {
  name: 'editMessageText',
  title: 'editMessageText of different messages',
  proof: 'P2',
  goal: { share: 0.8 },
  versions: 1,
  timed: true,
  async prepare(service, _watch, { messages }) {
    const pair = await makePair(service.front.baseUrl, service.adminToken, 'edit');
    const { bot, user } = pair;
    const rows = (await makeMessages(service, pair, user.id, text, messages)).map((id) => [String(id)]);
    const probes = await makeMessages(service, pair, user.id, text, 4);
    const path = `/bot${bot.token}/editMessageText`;
    const probe = (words: string) => ({ body: { chat_id: user.id, message_id: probes[0], text: words } });
    const { result } = await ask<{ result: Message }>(service.front, path, probe('one'));
    const { from, chat } = result;
    const floor = await service.startFloor({ kind: 'edit', bot: bot.id, user: user.id, from, chat });
    await sleep(limits.edit_interval_ms_min);
    const bare = await ask<{ result: Message }>(floor, path, probe('two'));
    expect(
      isDeepStrictEqual(shapeOf(bare.result), shapeOf(result)),
      'the answer of the floor has another shape',
    );
    const body = `{"chat_id":${user.id},"message_id":{1},"text":${JSON.stringify(`${text} {pass} {salt}`)}}`;
    const side = (target: Target): Side => ({
      target,
      series: { origin: target.baseUrl, calls: [{ verb: 'POST', path, body }], rows },
      verify: () => verifyEdits(service, target, pair, path, probes),
    });
    return { base: side(floor), subject: side(service.front), labels };
  },
};
