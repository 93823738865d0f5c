/** For goal P1: measures `getMe`, compared with a server that sends the same bytes without reading the request. */
import { expect, makePair } from '../../src/loadtest/client.js';
import { once } from '../../src/loadtest/series.js';
import type { Target } from '../service/service.js';
import { askForText, type Scenario, type Side } from './scenario.js';

export const getMe: Scenario = {
  name: 'getMe',
  title: 'getMe',
  proof: 'P1',
  goal: { share: 0.85 },
  versions: 0,
  timed: true,
  async prepare(service) {
    const { bot } = await makePair(service.front.baseUrl, service.adminToken, 'get_me');
    const path = `/bot${bot.token}/getMe`;
    const wanted = await askForText(service.front, path);
    const { ok, result } = JSON.parse(wanted) as { ok: boolean; result: Record<string, unknown> };
    const { id, username, is_bot: isBot, first_name: name } = result;
    expect(
      ok && id === bot.id && username === bot.username && isBot === true && name === bot.name,
      `getMe says ${wanted}`,
    );
    const side = (target: Target): Side => ({
      target,
      series: { origin: target.baseUrl, calls: [{ verb: 'GET', path }], rows: once },
      async verify() {
        const body = await askForText(target, path);
        expect(body === wanted, `getMe returned ${body} instead of ${wanted}`);
      },
    });
    return {
      base: side(await service.startFloor({ kind: 'get_me', body: wanted })),
      subject: side(service.front),
      labels: ['floor', 'service'],
    };
  },
};
