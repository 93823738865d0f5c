/**
 * Tests that no node accepts a token after the call that revoked the token has returned (law 7). The tests force the
 * order of events.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ApiError } from '../../src/errors.js';
import { limits } from '../../src/limits.js';
import { eventually, gate } from '../journal/support.js';
import { RunningTime } from '../support/running_time.js';
import {
  makeBot,
  makeUser,
  type Person,
  pass,
  startCluster,
  type TestCluster,
  type TestNode,
  within,
} from '../support/store.js';
import { fastest, ready_ms_max } from '../support/times.js';

let time: RunningTime;
let cluster: TestCluster;
let a: TestNode;
let b: TestNode;
let owner: Person;
let bot: Person;

const leaseMs = limits.auth_lease_ms + limits.auth_lease_margin_ms;
const regenerate = (node: TestNode) => node.store.bots.regenerateToken(owner.id, bot.id);
/** Returns the answer that the node has cached, or null if the node must ask Redis. */
const fromMemory = (node: TestNode, token: string) => {
  const answer = node.store.auth.bot(token);
  if (!(answer instanceof Promise)) return answer;
  answer.catch(() => undefined);
  return null;
};

/** The scripts that a revocation calls before its commit. They check whether Redis accepts the revocation. */
const beforeCommit = ['auth/pending', 'control/forget'];
const dyingAfterCommit: TestNode['hooks']['call'] = (name, run) =>
  beforeCommit.includes(name) ? run() : Promise.reject(new Error('the process died'));

beforeEach(async () => {
  time = new RunningTime();
  cluster = await startCluster(2, undefined, time);
  [a, b] = await Promise.all([cluster.node(), cluster.node()]);
  await Promise.all([a.store.auth.start(), b.store.auth.start()]);
  owner = await makeUser(b);
  bot = await makeBot(b, owner);
});
afterEach(() => cluster.close());

describe('while Redis is available, every node refuses a revoked token', () => {
  // A node that has been connected to Redis for less than one lease needs a whole lease for each revocation. Lets this
  // lease pass before the tests.
  beforeEach(() => pass(time, leaseMs, [a, b]));

  test('a revocation returns when every node has dropped the token from its cache, long before a lease ends', async () => {
    await a.store.auth.bot(bot.token);
    expect(fromMemory(a, bot.token)).toMatchObject({ id: bot.id });
    let former = bot.token;
    const took = await fastest(limits.auth_lease_ms / 2, async () => {
      const { token } = await regenerate(b);
      expect(fromMemory(a, former)).toBeNull();
      expect(await a.store.auth.bot(former)).toBeNull();
      expect(await a.store.auth.bot(token)).toMatchObject({ id: bot.id });
      former = token;
    });
    expect(took).toBeLessThan(limits.auth_lease_ms / 2);
  });

  test('a look-up that began before a revocation does not make the token valid again', async () => {
    const held = gate();
    a.store.auth.beforeRemember = () => held.wait();
    const looked = a.store.auth.bot(bot.token);
    await held.reached;
    await regenerate(b);
    held.open();
    await looked;
    expect(a.store.auth.stats.remembered).toBe(0);
    expect(await a.store.auth.bot(bot.token)).toBeNull();
  });

  test('if a node cannot renew its lease, a revocation waits until this node stops trusting its cache', async () => {
    await a.store.auth.bot(bot.token);
    const cut = gate();
    a.hooks.call = async (name, run) => {
      if (name === 'auth/renew') await cut.wait();
      return run();
    };
    await cut.reached;
    const began = performance.now();
    const revoked = regenerate(b);
    // The node accepts the token until its lease ends. Until then, the caller gets no answer.
    expect(await within(limits.auth_lease_ms / 4, revoked)).toBe('late');
    expect(fromMemory(a, bot.token)).toMatchObject({ id: bot.id });
    await revoked;
    expect(performance.now() - began).toBeGreaterThanOrEqual(limits.auth_lease_ms);
    expect(fromMemory(a, bot.token)).toBeNull();
    expect(a.store.auth.stats.remembered).toBe(1);
    expect(await a.store.auth.bot(bot.token)).toBeNull();
    cut.open();
  });

  test('after the clock of Redis is set forward, a revocation still waits for a node with a valid lease', async () => {
    await a.store.auth.bot(bot.token);
    const cut = gate();
    a.hooks.call = async (name, run) => {
      if (name === 'auth/renew') await cut.wait();
      return run();
    };
    await cut.reached;
    // Moves the ends of all leases back by two minutes, as if the clock of Redis had been set forward by two minutes.
    const { client } = b.connection;
    for (const [node, entry] of Object.entries(await client.hgetall(a.keys.authNodes()))) {
      const [acked, ends] = entry.split(' ');
      if (ends !== undefined)
        await client.hset(a.keys.authNodes(), node, `${acked} ${Number(ends) - 120_000}`);
    }
    await regenerate(b);
    expect(fromMemory(a, bot.token)).toBeNull();
    // Waits until the node has been removed from the list, so that the next revocation does not wait for it.
    await eventually('acknowledged', async () => (await client.hlen(a.keys.authNodes())) === 3);
    cut.open();
  });

  test('a lease counts from the time at which its renewal was sent, not from the time at which the answer arrived', async () => {
    await a.store.auth.bot(bot.token);
    const slow = gate();
    a.hooks.call = async (name, run) => {
      const answer = await run();
      if (name === 'auth/renew') await slow.wait();
      return answer;
    };
    await slow.reached;
    time.skip(limits.auth_lease_ms);
    a.hooks.call = (name, run) => (name === 'auth/renew' ? new Promise(() => undefined) : run());
    slow.open();
    await sleep(20);
    expect(fromMemory(a, bot.token)).toBeNull();
  });

  test('if all hints are lost, a revocation waits for one more renewal at most', async () => {
    a.hooks.hint = () => false;
    await a.store.auth.bot(bot.token);
    let { token } = bot;
    const took = await fastest(limits.auth_lease_ms, async () => {
      await a.store.auth.bot(token);
      const former = token;
      ({ token } = await regenerate(b));
      expect(fromMemory(a, former)).toBeNull();
    });
    expect(took).toBeLessThan(limits.auth_lease_ms);
  });

  test('an idle node without a lease does not accept a token that was revoked meanwhile', async () => {
    await a.store.auth.bot(bot.token);
    await pass(time, limits.auth_idle_ms + 2 * limits.auth_lease_renew_ms, [a, b]);
    let renewals = 0;
    a.hooks.call = (name, run) => {
      if (name === 'auth/renew') renewals++;
      return run();
    };
    await pass(time, leaseMs, [a, b]);
    expect(renewals).toBe(0);
    expect(a.store.auth.stats).toMatchObject({ remembered: 1, leased: true });
    a.hooks.hint = () => false;
    const { token } = await regenerate(b);
    expect(fromMemory(a, bot.token)).toBeNull();
    expect(await a.store.auth.bot(bot.token)).toBeNull();
    expect(await a.store.auth.bot(token)).toMatchObject({ id: bot.id });
    await eventually('renewed', () => renewals > 1);
    expect(fromMemory(a, token)).toMatchObject({ id: bot.id });
  }, 30_000);

  test('a node drops all cached tokens if entries that the node has not read are missing from the log of revocations', async () => {
    const other = await makeBot(b, owner);
    await a.store.auth.bot(bot.token);
    await a.store.auth.bot(other.token);
    await b.connection.client.xadd(cluster.keys.authRevoked(), '5-0', 's', `bot:${other.id}`);
    await b.connection.client.hset(cluster.keys.authNodes(), 'epoch', 5);
    await eventually('forgotten', () => a.store.auth.stats.remembered === 0);
  });

  test('if a process dies between the commit and the refresh of a revocation, the sweep completes the revocation', async () => {
    await a.store.auth.bot(bot.token);
    b.hooks.call = dyingAfterCommit;
    await expect(regenerate(b)).rejects.toThrow('died');
    expect(await a.store.auth.bot(bot.token)).toMatchObject({ id: bot.id });
    a.store.sweep.start();
    await eventually('revoked', async () => (await a.store.auth.bot(bot.token)) === null);
    const token = await a.store.bots.token(owner.id, bot.id);
    expect(await a.store.auth.bot(token)).toMatchObject({ id: bot.id });
    const left = () => a.db.query('select id from control_outbox where subject_id = $1', [bot.id]);
    await eventually('struck off', async () => (await left()).length === 0);
  });

  test('if a sweep dies while it processes a row, another sweep processes the row', async () => {
    b.hooks.call = dyingAfterCommit;
    await expect(regenerate(b)).rejects.toThrow('died');
    await sleep(1_000);
    b.store.sweep.start();
    await eventually('the sweep failed', () => b.errors.length > 0);
    await b.store.sweep.stop();
    a.store.sweep.start();
    await eventually('revoked', async () => (await a.store.auth.bot(bot.token)) === null);
  });
});

describe('a revocation takes effect even if Redis refuses the revocation for a while', () => {
  const away = () => Promise.reject(new ApiError('unavailable', { retry_after: 1 }));

  test.each(beforeCommit)(
    'if %s fails before the commit of a revocation, the token stays valid',
    async (script) => {
      b.hooks.call = (name, run) => (name === script ? away() : run());
      await expect(regenerate(b)).rejects.toMatchObject({ kind: 'unavailable' });
      expect(await a.store.bots.token(owner.id, bot.id)).toBe(bot.token);
      expect(await a.store.auth.bot(bot.token)).toMatchObject({ id: bot.id });
    },
  );

  test('if a revocation fails after its commit, the call returns when every lease has expired', async () => {
    b.hooks.call = (name, run) => (name === 'auth/revoke' ? away() : run());
    const began = performance.now();
    await expect(regenerate(b)).rejects.toMatchObject({ kind: 'unavailable' });
    expect(performance.now() - began).toBeGreaterThanOrEqual(leaseMs);
    expect(await a.store.bots.token(owner.id, bot.id)).not.toBe(bot.token);
  });
});

describe('a revocation takes effect after Redis has lost its data', () => {
  async function emptied(): Promise<void> {
    await b.connection.client.flushall();
  }

  test('nodes drop their cached tokens after Redis loses its data, even if epoch numbers are reused', async () => {
    await a.store.auth.revoke('bot:1');
    await eventually('acknowledged', () => a.store.auth.stats.epoch === 1);
    await a.store.auth.bot(bot.token);
    expect(a.store.auth.stats.remembered).toBe(1);
    const cut = gate();
    a.hooks.call = async (name, run) => {
      if (name === 'auth/renew') await cut.wait();
      return run();
    };
    await cut.reached;
    await emptied();
    await b.store.auth.revoke('bot:2');
    cut.open();
    await eventually('forgotten', () => a.store.auth.stats.remembered === 0);
    expect(a.store.auth.stats.epoch).toBe(1);
  });

  test('a revocation waits even for nodes that Redis no longer lists', async () => {
    await pass(time, leaseMs, [a, b]);
    await a.store.auth.bot(bot.token);
    const cut = gate();
    a.hooks.call = async (name, run) => {
      if (name === 'auth/renew') await cut.wait();
      return run();
    };
    await cut.reached;
    await emptied();
    await regenerate(b);
    expect(fromMemory(a, bot.token)).toBeNull();
    expect(await a.store.auth.bot(bot.token)).toBeNull();
    cut.open();
  });

  test('a revocation waits even for nodes that Redis forgets during the revocation', async () => {
    // Node c has no lease, so the list of nodes does not contain it after the loss. Only the raised incarnation shows
    // that Redis has lost the list.
    const c = await cluster.node();
    await c.store.auth.revoke('bot:1');
    await a.store.auth.bot(bot.token);
    const cut = gate();
    a.hooks.call = async (name, run) => {
      if (name === 'auth/renew') await cut.wait();
      return run();
    };
    b.hooks.call = a.hooks.call;
    c.hooks.call = async (name, run) => {
      const answer = await run();
      if (name === 'auth/revoke') await emptied();
      return answer;
    };
    await cut.reached;
    await regenerate(c);
    expect(fromMemory(a, bot.token)).toBeNull();
    cut.open();
  });

  test('after Redis restarts without data, no node accepts a token from its cache for longer than a lease', async () => {
    await a.store.auth.bot(bot.token);
    await cluster.redis.stop();
    await a.db.query('update bots set token_hmac = $2 where id = $1', [bot.id, Buffer.alloc(32)]);
    time.skip(limits.auth_lease_ms);
    expect(fromMemory(a, bot.token)).toBeNull();
    await cluster.redis.start();
    await Promise.all([a.connection.ready(ready_ms_max), b.connection.ready(ready_ms_max)]);
    await b.connection.client.flushall();
    await eventually('forgotten', () => a.store.auth.stats.remembered === 0);
    expect(await a.store.auth.bot(bot.token)).toBeNull();
  });
});
