/** Tests the fixture itself. It starts real processes and leaves none of them running. */
import { expect, test } from 'vitest';
import { commandOf } from '../../src/dev/processes.js';
import { resultOf, startService } from './service.js';

test('a killed front of the test service can start again', async () => {
  const service = await startService({ fronts: 2 });
  const pids = () => [...service.fronts, service.deliver, service.flush].map(({ pid }) => pid);
  const [a, b] = service.fronts;
  const owner = await service.newUser('olga');
  const bot = await service.newBot(owner, 'echo');
  await service.openChat(owner, bot);
  const [update] = await resultOf(service.bot(bot, 'getUpdates', {}, 1));
  expect(update.message).toMatchObject({ text: '/start', from: { id: owner.id }, chat: { id: owner.id } });

  const former = b?.pid;
  await b?.kill();
  await expect(service.bot(bot, 'getMe', {}, 1)).rejects.toThrow();
  await b?.start();
  expect(b?.pid).not.toBe(former);
  expect((await resultOf(service.bot(bot, 'getMe', {}, 1))).id).toBe(bot.id);
  expect(await a.stop()).toBe('exit code 0');
  await a.start();

  const all = [...pids(), former as number, service.redis.pid];
  await service.stop();
  expect(all.filter((pid) => commandOf(pid) !== undefined)).toEqual([]);
});
