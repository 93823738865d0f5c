/**
 * Tests concurrent changes of a bot’s owner, and of the people who may write to the bot. The tests force the order of
 * events. One change wins, and all nodes apply the winning change.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ApiError } from '../../src/errors.js';
import { limits } from '../../src/limits.js';
import { directChat } from '../../src/store/core/keys.js';
import { eventually, gate } from '../journal/support.js';
import {
  makeBot,
  makeUser,
  type Person,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
} from '../support/store.js';

let cluster: TestCluster;
let a: TestNode;
let b: TestNode;
let owner: Person;
let ben: Person;
let cora: Person;
let bot: Person;
let names: Record<number, string>;

beforeAll(async () => {
  cluster = await startCluster(2);
  [a, b] = await Promise.all([cluster.node(), cluster.node()]);
  await Promise.all([a.store.auth.start(), b.store.auth.start()]);
});
afterAll(() => cluster.close());
beforeEach(async () => {
  [owner, ben, cora] = await Promise.all([makeUser(a), makeUser(a), makeUser(a)]);
  bot = await makeBot(a, owner);
  names = {};
  for (const { id } of [owner, ben, cora]) names[id] = (await a.store.users.find(id))?.username ?? '';
  for (const node of [a, b]) await node.store.auth.bot(bot.token);
});
afterEach(() => {
  for (const node of [a, b]) node.hooks.call = (_, run) => run();
});

const transfer = (node: TestNode, to: Person) =>
  node.store.bots.transfer(owner.id, bot.id, names[to.id] as string);
const kinds = (ended: readonly PromiseSettledResult<unknown>[]) =>
  ended.map((each) => (each.status === 'fulfilled' ? 'done' : (each.reason as ApiError).kind)).sort();
const ownerOf = async (node: TestNode) => (await node.store.bots.find(bot.id))?.owner;
const accepts = async (token: string) =>
  Promise.all([a, b].map(async (node) => (await node.store.auth.bot(token)) !== null));
const [yes, no] = [
  [true, true],
  [false, false],
];

async function consistent(now: Person): Promise<string> {
  for (const node of [a, b]) expect(await ownerOf(node)).toBe(now.id);
  const token = await b.store.bots.token(now.id, bot.id);
  expect(await accepts(token)).toEqual(yes);
  if (now !== owner) {
    expect(await accepts(bot.token)).toEqual(no);
    await expect(a.store.bots.token(owner.id, bot.id)).rejects.toMatchObject({ kind: 'not_bot_owner' });
  }
  for (const each of [owner, ben, cora]) {
    const listed = (await a.store.bots.listOf(each.id, 0, 100)).map(({ id }) => id);
    expect(listed).toEqual(each === now ? [bot.id] : []);
  }
  return token;
}

describe('concurrent owner changes', () => {
  test('if two transfers of a bot run concurrently, only one of them succeeds', async () => {
    const ended = await Promise.allSettled([transfer(a, ben), transfer(b, cora)]);
    expect(kinds(ended)).toEqual(['done', 'not_bot_owner']);
    await consistent(ended[0].status === 'fulfilled' ? ben : cora);
  });

  test('if a transfer and a token regeneration run concurrently, the former owner never gets the new owner’s token', async () => {
    for (let round = 0; round < 5; round++) {
      bot = await makeBot(a, owner);
      const [moved, made] = await Promise.allSettled([
        transfer(a, ben),
        b.store.bots.regenerateToken(owner.id, bot.id),
      ]);
      expect(moved.status).toBe('fulfilled');
      const token = await b.store.bots.token(ben.id, bot.id);
      expect(await accepts(token)).toEqual(yes);
      if (made.status === 'fulfilled') {
        expect(made.value.token).not.toBe(token);
        expect(await accepts(made.value.token)).toEqual(no);
      } else expect(made.reason).toMatchObject({ kind: 'not_bot_owner' });
    }
  });

  test('if a transfer and a deletion of a bot run concurrently, only one of them succeeds', async () => {
    const [moved, gone] = await Promise.allSettled([transfer(a, ben), b.store.bots.remove(owner.id, bot.id)]);
    if (moved.status === 'fulfilled') {
      expect((gone as PromiseRejectedResult).reason).toMatchObject({ kind: 'not_bot_owner' });
      await consistent(ben);
    } else {
      expect([gone.status, moved.reason]).toMatchObject(['fulfilled', { kind: 'bot_not_found' }]);
      expect(await accepts(bot.token)).toEqual(no);
      expect(await a.store.bots.find(bot.id)).toBeNull();
      await expect(a.store.bots.owned(ben.id, bot.id)).rejects.toMatchObject({ kind: 'bot_not_found' });
    }
  });

  test('if two deletions of a bot run concurrently, only one of them succeeds', async () => {
    const ended = await Promise.allSettled([a, b].map((n) => n.store.bots.remove(owner.id, bot.id)));
    expect(kinds(ended)).toEqual(['bot_not_found', 'done']);
  });

  test('if a person may own only one more bot, only one of three concurrent calls succeeds: two transfers and one creation', async () => {
    await a.db.query(
      `insert into bots (owner_id, username, name) select $1, 'filler_' || n, 'x' from generate_series(1, $2::int) n`,
      [ben.id, limits.bots_per_owner_max - 1],
    );
    const second = await makeBot(a, owner);
    const ended = await Promise.allSettled([
      transfer(a, ben),
      b.store.bots.transfer(owner.id, second.id, names[ben.id] as string),
      b.store.bots.create(ben.id, `extra_${bot.id}_bot`, 'x'),
    ]);
    expect(kinds(ended).filter((kind) => kind === 'done')).toHaveLength(1);
    expect(kinds(ended).filter((kind) => /^(recipient_)?too_many_bots$/.test(kind))).toHaveLength(2);
  });
});

test('if a process dies right after the commit of a transfer, the sweep of another node completes the transfer', async () => {
  // This node can no longer write to Redis.
  const dead = await cluster.node();
  dead.hooks.call = async (name, run) => {
    if (/^(control\/write|auth\/revoke|updates\/set_access)$/.test(name)) throw new Error('died');
    return run();
  };
  await expect(transfer(dead, ben)).rejects.toThrow('died');
  // On a busy machine, the lease of a node may have expired. The node may then already refuse the replaced token.
  b.store.sweep.start();
  await eventually('the former token is dead', async () => !(await accepts(bot.token)).includes(true));
  // When the outbox is empty, the sweep has made all writes of the transfer.
  await eventually('swept', async () => (await a.db.query('select from control_outbox')).length === 0);
  await consistent(ben);
});

test('the audit log records changes of pictures', async () => {
  await a.store.pictures.set(owner.id, bot.id, 'avatar', null);
  const items = await a.store.audit.list(bot.id, limits.id_max, 1);
  expect(items).toMatchObject([
    { event: 'picture_changed', actor_type: 'user', actor_id: owner.id, details: { picture: 'avatar' } },
  ]);
});

test('the username of a deleted bot becomes free when its reservation ends', async () => {
  const username = (await a.store.bots.find(bot.id))?.username as string;
  await a.store.bots.remove(owner.id, bot.id);
  const again = () => b.store.bots.create(ben.id, username, 'Again');
  await expect(again()).rejects.toMatchObject({ kind: 'username_taken' });
  expect(await a.store.bots.findByUsername(username)).toBeNull();
  await a.db.query('update names set free_at = now() where name = $1', [username.toLowerCase()]);
  const { bot: made } = await again();
  expect((await a.store.bots.findByUsername(username))?.id).toBe(made.id);
  await expect(again()).rejects.toMatchObject({ kind: 'username_taken' });
});

describe('repeated control calls', () => {
  test('if a control call is repeated, it gets the first answer, even if the bot has a new owner by then', async () => {
    const run = (again: boolean) =>
      a.store.under(`t${bot.id}`, again).bots.transfer(owner.id, bot.id, names[ben.id] as string);
    expect(await run(false)).toBe(true);
    const token = await consistent(ben);
    expect(await run(true)).toBe(true);
    expect(await consistent(ben)).toBe(token);
  });

  test('if a control call is repeated by the former owner, the answer does not show the new owner’s token', async () => {
    const regenerate = (again: boolean) =>
      a.store.under(`r${bot.id}`, again).bots.regenerateToken(owner.id, bot.id);
    const create = (again: boolean) =>
      a.store.under(`c${bot.id}`, again).bots.create(owner.id, `made_${bot.id}_bot`, 'Made');
    await regenerate(false);
    const made = await create(false);
    await transfer(b, ben);
    await b.store.bots.transfer(owner.id, made.bot.id, names[ben.id] as string);
    await expect(regenerate(true)).rejects.toMatchObject({ kind: 'not_bot_owner' });
    await expect(create(true)).rejects.toMatchObject({ kind: 'not_bot_owner' });
  });

  test('if the first call to delete a bot was not completed, a repeated call completes the deletion', async () => {
    const group = await a.store.chats.create('group', 'g', owner.id);
    await a.store.chats.putMember(group, { id: bot.id, is_bot: true }, 'member', {}, owner.id);
    a.hooks.call = async (name, run) => {
      if (name === 'updates/close_queue') throw new Error('died');
      return run();
    };
    const remove = (again: boolean) => a.store.under(`d${bot.id}`, again).bots.remove(owner.id, bot.id);
    await expect(remove(false)).rejects.toThrow('died');
    a.hooks.call = (_, run) => run();
    await remove(true);
    expect((await a.store.chats.find(group))?.bots).toEqual([]);
    expect(await accepts(bot.token)).toEqual(no);
  });
});

describe('the owner controls write access to a bot', () => {
  const chat = () => directChat(bot.id, ben.id);
  const send = (node: TestNode) => node.store.messages.send(chat(), ben.sender, text('x'));
  const set = (node: TestNode, ...people: Person[]) =>
    node.store.bots.setWriteAccess(
      ...[owner.id, bot.id, 'selected' as const],
      people.map(({ id }) => names[id] as string),
    );
  const refused = { kind: 'cant_write_to_bot' };

  test('after a person has lost write access, a node that still caches the old answer cannot restore the access', async () => {
    await a.store.chats.openDirect(bot.id, ben.id);
    await set(a, ben);
    const held = gate();
    b.hooks.call = async (name, run) => {
      if (name === 'updates/set_access') await held.wait();
      return run();
    };
    // This node has read that Ben may write, and is about to store this answer in Redis.
    const sending = send(b);
    await held.reached;
    await set(a, cora);
    await expect(send(a)).rejects.toMatchObject(refused);
    held.open();
    await expect(sending).rejects.toMatchObject(refused);
    await expect(send(b)).rejects.toMatchObject(refused);
  });

  test('if two changes of write access run concurrently, the change that commits last applies', async () => {
    await a.store.chats.openDirect(bot.id, ben.id);
    for (let round = 0; round < 5; round++) {
      await Promise.all([set(a, ben), set(b, cora)]);
      const { usernames } = await a.store.bots.writeAccess(bot.id);
      const may = usernames[0] === names[ben.id];
      for (const node of [a, b]) {
        if (may) await send(node);
        else await expect(send(node)).rejects.toMatchObject(refused);
      }
    }
  });

  test('a person keeps write access after changing the username', async () => {
    await a.store.chats.openDirect(bot.id, ben.id);
    await set(a, ben);
    await a.db.query("update users set username = 'renamed_' || id where id = $1", [ben.id]);
    await a.db.query("update names set name = 'renamed_' || owner where owner = $1", [ben.id]);
    await a.db.query('insert into names (name, owner) values ($1, $2)', [names[ben.id], cora.id]);
    await send(a);
    await expect(a.store.chats.openDirect(bot.id, cora.id)).rejects.toMatchObject(refused);
    expect((await a.store.bots.writeAccess(bot.id)).usernames).toEqual([`renamed_${ben.id}`]);
  });

  test('one call can give write access to the maximum number of people', async () => {
    await a.db.query(
      `with made as (insert into users (username, first_name) select 'many_' || n, 'x' from generate_series(1, $1::int) n
         returning id, username)
       insert into names (name, owner) select username, id from made`,
      [limits.writers_per_bot_max],
    );
    const many = Array.from({ length: limits.writers_per_bot_max }, (_, i) => `many_${i + 1}`);
    await a.store.chats.openDirect(bot.id, ben.id);
    await a.store.bots.setWriteAccess(owner.id, bot.id, 'selected', many);
    expect((await a.store.bots.writeAccess(bot.id)).usernames).toHaveLength(limits.writers_per_bot_max);
    await expect(send(a)).rejects.toMatchObject(refused);
    await a.store.bots.setWriteAccess(owner.id, bot.id, 'selected', [
      ...many.slice(1),
      names[ben.id] as string,
    ]);
    await send(a);
    // The first send stored in the chat’s record whether the person may write. This send therefore runs no query in
    // Postgres.
    const asked: string[] = [];
    a.hooks.query = (sql, run) => {
      asked.push(sql);
      return run();
    };
    await send(a);
    a.hooks.query = (_, run) => run();
    expect(asked).toEqual([]);
  });

  test('if Redis loses its latest writes, write access is read from Postgres again', async () => {
    await a.store.chats.openDirect(bot.id, ben.id);
    await set(a, cora);
    await expect(send(a)).rejects.toMatchObject(refused);
    // Simulates that Redis lost the change: restores the former policy (`wp`) with a former incarnation (`wi`).
    const state = a.keys.queueState(bot.id);
    await a.connection.client.hset(state, { wp: 'all', wi: -1 });
    await expect(send(b)).rejects.toMatchObject(refused);
    expect(await a.connection.client.hget(state, 'wp')).toBe('selected');
  });
});
