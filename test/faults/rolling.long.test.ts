/**
 * Restarts every front, worker and flusher cleanly behind a balancer under load. No request fails. Even long polls and
 * streams do not fail.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type EventSource, openEvents } from '../clients/event_source.js';
import { keepBooks } from '../delivery/world.js';
import { nothingWrong } from '../support/ledger.js';
import { type Balancer, findProgram, proxyKinds, startProxy } from '../support/proxies.js';
import { createRole, type RoleProcess, startPatiently } from '../support/role_process.js';
import { type Answer, resultOf, type Service, startService, type TestUser } from '../support/service.js';
import { amount, atLeast, atMost, nothingLost, patienceMs, report } from './report.js';
import { createWorld, eventually } from './world.js';

let service: Service;
let more: RoleProcess[] = [];
beforeAll(async () => {
  service = await startService({
    fronts: 3,
    extraEnv: { PARTITIONS: '16', WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32' },
    frontEnv: { DRAIN_MS: '5000', TRUSTED_PROXIES: '127.0.0.1/32' },
  });
  more = [createRole('deliver', async () => service.env), createRole('flush', async () => service.env)];
  await Promise.all(more.map((role) => role.start()));
});
afterAll(async () => {
  await Promise.all(more.map((role) => role.stop()));
  await service?.stop();
});

function through(balancer: Balancer) {
  const agent = new Agent({
    connect: { ca: balancer.ca },
    connections: 64,
    headersTimeout: 80_000,
    bodyTimeout: 80_000,
  });
  const counts = { requests: 0, polls: 0, failed: 0, byQuery: 0 };
  const failures: string[] = [];
  async function call(what: string, path: string, method: string, body?: object, token?: string) {
    counts.requests++;
    const headers = {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
    try {
      const answer = await request(`${balancer.url}${path}`, {
        method: method as 'GET',
        dispatcher: agent,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const response = (await answer.body.json()) as Answer['body'];
      if (answer.statusCode !== 200)
        fail(
          `${what}: ${answer.statusCode} ${answer.headers.uwebsockets ? 'front' : 'balancer'} ${JSON.stringify(response)}`,
        );
      return { status: answer.statusCode, headers: answer.headers, body: response };
    } catch (error) {
      fail(`${what}: ${(error as Error).message}`);
      throw error;
    }
  }
  const fail = (what: string) => {
    counts.failed++;
    failures.push(what);
  };
  const calls: Pick<Service, 'app' | 'bot'> = {
    app: (user, verb, path, body) => call(`${verb} ${path}`, path, verb, body as object, user.token),
    bot(bot, method, params = {}) {
      const path = `/bot${(bot as { token: string }).token}/${method}`;
      if (method === 'getUpdates') {
        counts.polls++;
        return call(method, path, 'POST', { ...params, timeout: 20 });
      }
      // Uses GET, because some libraries send all parameters in the query of a GET request, and because balancers may
      // repeat a GET request.
      if (counts.requests % 2 === 0) return call(method, path, 'POST', params);
      counts.byQuery++;
      const query = new URLSearchParams(
        Object.entries(params).map(([key, value]): [string, string] => [key, String(value)]),
      );
      return call(`GET ${method}`, `${path}?${query}`, 'GET');
    },
  };
  return { calls, counts, failures, fail, close: () => agent.destroy() };
}

/** A person’s stream. It reconnects whenever a node ends its connection. */
async function keepOpen(balancer: Balancer, user: TestUser, fail: (what: string) => void) {
  const state = { ends: 0, over: false };
  let source: EventSource | undefined;
  const onEnd = (why: 'end' | 'error') => {
    if (state.over) return;
    state.ends++;
    if (why === 'error') fail('a stream broke');
    source?.open().catch((error: Error) => fail(`a stream did not come back: ${error.message}`));
  };
  source = await openEvents(balancer.url, user.token, { ca: balancer.ca, onEnd });
  return {
    state,
    source,
    close() {
      state.over = true;
      source?.cut();
    },
  };
}

describe.each(proxyKinds.filter((kind) => findProgram(kind) !== undefined))('R19: behind %s', (kind) => {
  test(
    'no request fails while all nodes are restarted one after the other',
    async () => {
      const balancer = await startProxy(
        kind,
        service.fronts.map(({ port }) => port),
      );
      const client = through(balancer);
      const { counts, failures, fail } = client;
      const world = await createWorld({ ...service, ...client.calls });
      const books = await keepBooks();
      const [user] = world.users as [TestUser];
      const hooked = await service.newBot(user, 'hooked');
      const { url, certificate } = books;
      await service.openChat(user, hooked);
      await resultOf(service.bot(hooked, 'setWebhook', { url, certificate }));
      const streams = await Promise.all(world.users.map((each) => keepOpen(balancer, each, fail)));

      const ended = new AbortController();
      onTestFinished(async () => {
        ended.abort();
        for (const stream of streams) stream.close();
        await world.stop();
        await Promise.all([client.close(), balancer.stop(), books.close()]);
      });
      world.poll(() => 0);
      const loading = world.load({
        ...{ count: Number.POSITIVE_INFINITY, signal: ended.signal, front: () => 0, restMs: 60 },
      });
      let pushed = 0;
      const pushing = (async () => {
        for (; !ended.signal.aborted; await sleep(30)) {
          const text = `pushed ${++pushed}`;
          await client.calls
            .app(user, 'POST', `/api/chats/${hooked.id}/messages`, { text })
            .catch(() => null);
        }
      })();
      const began = performance.now();
      let restarts = 0;
      for (let round = 0; round < amount(1, 3); round++) {
        for (const role of [...service.fronts, service.deliver, service.flush, ...more]) {
          await sleep(1_500);
          expect(await role.stop()).toBe('exit code 0');
          await startPatiently(role);
          restarts++;
        }
      }
      await sleep(1_500);
      const seconds = (performance.now() - began) / 1_000;
      ended.abort();
      await Promise.all([loading, pushing]);
      const verdict = await world.settled();
      await books.tookIn(pushed, 60_000).catch(() => undefined);
      const texts = books.taken.map(({ text }) => text).filter((text) => text?.startsWith('pushed'));
      const missed = pushed - new Set(texts).size;

      // The stream reported each message in a person’s chat with a bot exactly once.
      const history = await world.history();
      const countUntold = () => {
        let untold = 0;
        for (const [i, each] of world.users.entries()) {
          const bot = (world.bots[i % world.bots.length] as { id: number }).id;
          const received = streams[i]?.source.events.flatMap(({ event, data }) =>
            event === 'message' && data.chat.id === bot ? [data.text as string] : [],
          );
          const kept = (history.get(`${bot}.${each.id}`) ?? []).map(({ text }) => text);
          untold += kept.filter((text) => received?.filter((one) => one === text).length !== 1).length;
        }
        return untold;
      };
      await eventually('the streams reported everything', () => countUntold() === 0).catch(() => undefined);
      const untold = countUntold();
      const ends = streams.reduce((sum, { state }) => sum + state.ends, 0);
      for (const stream of streams) stream.close();
      const { failed, ...amounts } = counts;
      const figures = { ...amounts, restarts, seconds, streamEnds: ends, pushed, ...verdict };
      report('R19', `rolling restart behind ${kind}`, figures, [
        atMost('failed requests, polls and streams', failed, 0),
        nothingLost(verdict),
        atMost('messages that a stream did not tell once', untold, 0),
        atMost('webhook deliveries missed', missed, 0),
        atLeast('restarts', restarts, amount(7, 21)),
      ]);
      expect(failures).toEqual([]);
      expect(verdict).toMatchObject(nothingWrong);
      expect([untold, missed]).toEqual([0, 0]);
      expect(ends).toBeGreaterThan(0);
    },
    // The time limit is at least ten minutes, because each of the seven clean shutdowns takes at least five seconds.
    Math.max(patienceMs, 600_000),
  );
});
