/** For goal P8: measures how the cost of `getMe` grows with the number of bots. Each call uses the next bot. */
import { expect, inParallel } from '../../src/loadtest/client.js';
import { makeManyBots, makePeople, type Person } from '../service/population.js';
import { ask, type Scenario, type Side } from './scenario.js';

const few = 10;

export const manyBots: Scenario = {
  name: 'bots',
  title: 'getMe of many bots',
  proof: 'P8',
  goal: { growth: 1.1, of: 'server' },
  versions: 0,
  async prepare(service, _watch, sizes) {
    const [owner] = (await makePeople(service, 'bots_owner', 1)) as [Person];
    const bots = await makeManyBots(service, owner, sizes.bots);
    const target = service.front;
    const check = async ({ id, token }: (typeof bots)[number]) => {
      const { result } = await ask<{ result: { id: number } }>(target, `/bot${token}/getMe`);
      expect(result.id === id, `getMe of bot ${id} returned ${result.id}`);
    };
    // Each bot's first call reads the bot from Postgres.
    await inParallel(bots.length, 32, (i) => check(bots[i] as (typeof bots)[number]));
    const side = (own: typeof bots): Side => ({
      target,
      series: {
        origin: target.baseUrl,
        calls: [{ verb: 'GET', path: '/bot{1}/getMe' }],
        rows: own.map(({ token }) => [token]),
      },
      async verify() {
        for (const at of [0, 0.5]) await check(own[Math.floor(at * own.length)] as (typeof bots)[number]);
      },
    });
    const name = (count: number) => `of ${count.toLocaleString('en')}`;
    const base = bots.slice(0, few);
    return { base: side(base), subject: side(bots), labels: [name(base.length), name(bots.length)] };
  },
};
