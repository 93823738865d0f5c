/** Counts the commands that calls send to Redis if all their data is already in Redis. */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { eventually } from '../clients/event_source.js';
import { openMasters, openMonitor } from '../support/cluster.js';
import {
  itemsOf,
  resultOf,
  type Service,
  startService,
  type TestBot,
  type TestUser,
} from '../support/service.js';

const calls = 60;

let service: Service;
let masters: Redis[];
let monitors: Redis[];
let user: TestUser;
let bot: TestBot;
/** For each master, the commands that clients have sent to it, in order. */
let seen: string[][][] = [];
/** The times at which the front renewed its authentication lease, in seconds of the Redis clock. */
let renewals: number[] = [];
/**
 * If a front is blocked for longer than this, its lease may have expired. The front must then look up the next token in
 * Redis.
 */
const heldUpSecondsMax = (limits.auth_lease_ms - limits.auth_lease_margin_ms) / 1_000;

beforeAll(async () => {
  // Disables the limit of wrong tokens, because counting a wrong token takes a script call.
  service = await startService({ fronts: 1, extraEnv: { GUESSES_BURST: '0' } });
  user = await service.newUser('ann');
  bot = await service.newBot(user, 'hot');
  await service.openChat(user, bot);
  // Stops the other processes, so that Redis counts only the commands of the front.
  await Promise.all([service.deliver.stop(), service.flush.stop()]);
  masters = openMasters(service.redis);
  monitors = await Promise.all(masters.map(openMonitor));
  for (const [i, monitor] of monitors.entries()) {
    monitor.on('monitor', (time: string, args: string[], source: string) => {
      if (args.some((arg) => arg.endsWith(':auth_nodes')) && source !== 'lua') renewals.push(Number(time));
      // Commands that a script runs inside Redis cost no round trip.
      if (source !== 'lua') seen[i]?.push(args);
    });
  }
});
afterAll(async () => {
  for (const client of [...(monitors ?? []), ...(masters ?? [])]) client.disconnect();
  await service?.stop();
});

/**
 * The commands that the front sent during `work`. Leaves out commands that no call causes: lease renewals, token
 * look-ups after an expired lease, status reports, identity checks, and queries about the memory and the slots of
 * Redis.
 */
async function during(work: () => Promise<void>): Promise<string[]> {
  const mark = (name: string) =>
    Promise.all(
      masters.map(async (redis, i) => {
        await redis.echo(name);
        await eventually(() => expect(seen[i]?.some(([, text]) => text === name)).toBe(true));
      }),
    );
  seen = masters.map(() => []);
  renewals = renewals.slice(-1);
  await mark('begin');
  await work();
  await mark('end');
  const between = (sent: readonly string[][]) => {
    const at = (name: string) => sent.findIndex(([, text]) => text === name);
    return sent.slice(at('begin') + 1, at('end'));
  };
  let lookUps = renewals.filter((at, i) => at - (renewals[i - 1] ?? at) > heldUpSecondsMax).length;
  return (
    seen
      .flatMap(between)
      .filter((args) => !args.some((arg) => /:bot:\d+$/.test(arg)) || lookUps-- <= 0)
      // Leaves out the key `postgres`, the position of the last Postgres commit. Its write follows the commit and is
      // not part of the call.
      .filter((args) => !args.some((arg) => /:(auth_nodes|nodes|figures|rings|postgres)$/.test(arg)))
      .filter(([command = '']) => command.toLowerCase() !== 'time')
      .filter(([command = '']) => !/^(cluster|info)$/i.test(command))
      .filter(([command = '', , field = '']) => !(/^hmget$/i.test(command) && /^(ID|run)$/.test(field)))
      .map(([command = '']) => command.toLowerCase())
  );
}

test('getMe with a cached token sends no command to Redis', async () => {
  await resultOf(service.bot(bot, 'getMe'));
  const sent = await during(async () => {
    for (let i = 0; i < calls; i++) await resultOf(service.bot(bot, 'getMe'));
  });
  expect(sent).toEqual([]);
});

test('getMyName takes no Redis call, and getMyDescription takes one script call', async () => {
  await resultOf(service.bot(bot, 'setMyName', { name: 'Hot', language_code: 'ru' }));
  for (const method of ['getMyName', 'getMyDescription']) await resultOf(service.bot(bot, method));
  const names = await during(async () => {
    for (let i = 0; i < calls; i++) {
      for (const language_code of ['', 'ru'])
        await resultOf(service.bot(bot, 'getMyName', { language_code }));
      await resultOf(service.bot(bot, 'getMe'));
    }
  });
  expect(names).toEqual([]);
  const descriptions = await during(async () => {
    for (let i = 0; i < calls; i++) await resultOf(service.bot(bot, 'getMyDescription'));
  });
  expect(descriptions).toEqual(Array(calls).fill('evalsha'));
});

test('sendMessage in a chat whose data is in Redis takes one script call, even with a keyboard, a reply and entities', async () => {
  const first = await resultOf(service.bot(bot, 'sendMessage', { chat_id: user.id, text: 'warm' }));
  const sent = await during(async () => {
    for (let i = 0; i < calls; i++) {
      await resultOf(
        service.bot(bot, 'sendMessage', {
          chat_id: user.id,
          text: `<b>n</b> ${i}`,
          parse_mode: 'HTML',
          reply_parameters: { message_id: first.message_id },
          reply_markup: { inline_keyboard: [[{ text: 'a', callback_data: 'a' }]] },
        }),
      );
    }
  });
  expect(sent).toEqual(Array(calls).fill('evalsha'));
});

test('editMessageText of a message in Redis takes one script call, even if the edit is refused', async () => {
  const ids: number[] = [];
  for (let i = 0; i < calls; i++)
    ids.push((await resultOf(service.bot(bot, 'sendMessage', { chat_id: user.id, text: 'x' }))).message_id);
  const edit = (message_id: number, text: string) =>
    service.bot(bot, 'editMessageText', { chat_id: user.id, message_id, text });
  await resultOf(edit(ids.pop() as number, 'warm'));
  const sent = await during(async () => {
    for (const id of ids) await resultOf(edit(id, 'y'));
  });
  expect(sent).toEqual(Array(calls - 1).fill('evalsha'));
  const refused = await during(async () => {
    for (const id of ids) expect((await edit(id, 'y')).status).toBe(400);
  });
  expect(refused).toEqual(Array(calls - 1).fill('evalsha'));
});

test('a message sent by a person with a cached token takes one script call', async () => {
  const say = () => resultOf(service.app(user, 'POST', `/api/chats/${bot.id}/messages`, { text: 'hi' }));
  await say();
  const sent = await during(async () => {
    for (let i = 0; i < calls; i++) await say();
  });
  expect(sent).toEqual(Array(calls).fill('evalsha'));
});

test('a call with a made-up token sends no command to Redis', async () => {
  const [id, secret = ''] = bot.token.split(':');
  const sent = await during(async () => {
    for (let i = 0; i < calls; i++) {
      const guess = `${id}:A${String(i).padStart(5, '0')}${secret.slice(6)}`;
      expect((await service.bot(guess, 'getMe')).status).toBe(401);
    }
  });
  expect(sent).toEqual([]);
});

test('forwarding or copying up to 100 messages in Redis takes two script calls, and deleting them takes one script call', async () => {
  const ids: number[] = [];
  for (let i = 0; i < 100; i++)
    ids.push((await resultOf(service.bot(bot, 'sendMessage', { chat_id: user.id, text: 'x' }))).message_id);
  const call = (method: string, params: object) =>
    resultOf(service.bot(bot, method, { chat_id: user.id, from_chat_id: user.id, ...params }));
  const [message_id] = ids;
  const both = ['evalsha', 'evalsha'];
  for (const [method, params, sent] of [
    ['forwardMessage', { message_id }, both],
    ['copyMessage', { message_id }, both],
    ['forwardMessages', { message_ids: ids }, both],
    ['copyMessages', { message_ids: ids }, both],
    ['deleteMessages', { message_ids: ids }, ['evalsha']],
  ] as const) {
    const once = method.startsWith('delete') ? { message_ids: [999_999] } : params;
    await call(method, once);
    expect(await during(async () => void (await call(method, params))), method).toEqual(sent);
  }
});

test('a coalesced edit takes one script call', async () => {
  const { message_id } = await resultOf(service.bot(bot, 'sendMessage', { chat_id: user.id, text: 'x' }));
  const edit = (text: string) =>
    service.bot(bot, 'editMessageText', { chat_id: user.id, message_id, text, coalesce: true });
  const expectApplied = (text: string) =>
    expect
      .poll(async () => {
        const path = `/api/chats/${bot.id}/messages?limit=1`;
        return (await itemsOf(service.app(user, 'GET', path)))[0].text;
      })
      .toBe(text);
  await resultOf(edit('warm'));
  await resultOf(edit('pending'));
  await expectApplied('pending');
  const began = performance.now();
  const sent = await during(async () => {
    for (let i = 0; i < calls; i++) await resultOf(edit(`part ${i}`));
  });
  // Once a second, a timer takes the pending edit and applies it.
  const timers = Math.ceil((performance.now() - began) / limits.edit_interval_ms_min) + 1;
  expect(new Set(sent)).toEqual(new Set(['evalsha']));
  expect(sent.length).toBeGreaterThanOrEqual(calls);
  expect(sent.length).toBeLessThanOrEqual(calls + 2 * timers);
  await expectApplied(`part ${calls - 1}`);
});
