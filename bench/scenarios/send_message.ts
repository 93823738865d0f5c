/** For goal P2: measures `sendMessage` in one chat, compared with a minimal server that calls the same script. */
import { isDeepStrictEqual } from 'node:util';
import { expect, makePair, type Pair } from '../../src/loadtest/client.js';
import { once } from '../../src/loadtest/series.js';
import { type Message, text } from '../service/population.js';
import type { Service, Target } from '../service/service.js';
import { historyOf, labels, recent, shapeOf } from './one_chat.js';
import { ask, type Prepared, type Scenario, type Side } from './scenario.js';

/**
 * Sends a few messages one after another. Checks that the user's history of the chat shows them in order and unchanged.
 */
async function verifySends(service: Service, target: Target, pair: Pair, path: string): Promise<void> {
  const { bot, user } = pair;
  const sent: Message[] = [];
  for (let i = 0; i < 3; i++) {
    const body = { chat_id: user.id, text };
    const { result } = await ask<{ result: Message }>(target, path, { body });
    expect(result.text === text, 'sendMessage returned another text');
    expect(result.from.id === bot.id && result.chat.id === user.id, 'sendMessage names others');
    expect(recent(result.date), `sendMessage returned the date ${result.date}`);
    sent.push(result);
  }
  const history = await historyOf(service, pair, sent.length);
  for (const [i, message] of sent.entries()) {
    const seen = history[sent.length - 1 - i];
    const previous = sent[i - 1]?.message_id ?? message.message_id - 1;
    expect(message.message_id === previous + 1, 'message ids are not consecutive');
    expect(
      seen?.message_id === message.message_id &&
        seen.text === text &&
        seen.date === message.date &&
        seen.from.id === bot.id,
      `message ${message.message_id} is not in the history`,
    );
  }
}

async function verifyThinSends(target: Target, path: string, body: string): Promise<void> {
  const ids: number[] = [];
  for (let i = 0; i < 3; i++) {
    const { result } = await ask<{ result: Message }>(target, path, { body });
    expect(result.text === text && recent(result.date), 'the thin floor returned another message');
    ids.push(result.message_id);
  }
  expect(
    ids.every((id, i) => i === 0 || id === (ids[i - 1] as number) + 1),
    'ids are not consecutive',
  );
}

const sendAgainst =
  (kind: 'send' | 'thin_send') =>
  async (service: Service): Promise<Prepared> => {
    const pair = await makePair(service.front.baseUrl, service.adminToken, kind);
    const { bot, user } = pair;
    const path = `/bot${bot.token}/sendMessage`;
    const body = JSON.stringify({ chat_id: user.id, text });
    const { result } = await ask<{ result: Message }>(service.front, path, { body });
    const { from, chat } = result;
    const floor = await service.startFloor({ kind, bot: bot.id, user: user.id, from, chat });
    const bare = await ask<{ result: Message }>(floor, path, { body });
    expect(
      isDeepStrictEqual(shapeOf(bare.result), shapeOf(result)),
      'the answer of the floor has another shape',
    );
    const side = (target: Target): Side => ({
      target,
      series: { origin: target.baseUrl, calls: [{ verb: 'POST', path, body }], rows: once },
      verify: () =>
        target === floor && kind === 'thin_send'
          ? verifyThinSends(target, path, body)
          : verifySends(service, target, pair, path),
    });
    return { base: side(floor), subject: side(service.front), labels };
  };

export const sendMessage: Scenario = {
  name: 'sendMessage',
  title: 'sendMessage',
  proof: 'P2',
  goal: { share: 0.8, redis_us: 22 },
  versions: 1,
  timed: true,
  prepare: sendAgainst('send'),
};

/**
 * Compares with a minimal server without checks, request ids and journal. The difference between this server and the
 * minimal server for `sendMessage` is what checks, request ids and the journal cost.
 */
export const thinSend: Scenario = {
  name: 'sendMessage_thin',
  title: 'sendMessage, compared with a script of three commands',
  proof: '',
  goal: null,
  versions: 1,
  prepare: sendAgainst('thin_send'),
};
