/**
 * Tests nodes that set the commands of one bot concurrently. In the end, Postgres and every node have the same
 * commands.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { evict, makeBot, makeUser, startCluster, type TestCluster, type TestNode } from '../support/store.js';

let cluster: TestCluster;
let nodes: TestNode[];

beforeAll(async () => {
  cluster = await startCluster();
  nodes = [await cluster.node(), await cluster.node()];
});
afterAll(() => cluster?.close());

const list = (command: string) => [{ command, description: 'd' }];

async function stored(bot: number) {
  const [row] = await (nodes[0] as TestNode).db.query<{ commands: object }>(
    'select commands from bots where id = $1',
    [bot],
  );
  return row?.commands;
}

async function expectAlike(bot: number): Promise<void> {
  const row = await stored(bot);
  for (const node of nodes) expect(await node.store.bots.commands(bot)).toEqual(row);
}

test('if two nodes change the commands of a bot concurrently, both nodes end with the same commands', async () => {
  const [one] = nodes as [TestNode];
  const bot = await makeBot(one, await makeUser(one));
  for (let round = 0; round < 10; round++) {
    await Promise.all(
      Array.from({ length: 12 }, (_, i) => {
        const node = nodes[i % 2] as TestNode;
        if (i === 7) return evict(node, cluster.keys.commands(bot.id));
        if (i % 5 === 4) return node.store.bots.commands(bot.id);
        return node.store.bots.setCommands(
          bot.id,
          `default|${i % 3 === 0 ? 'en' : ''}`,
          i % 4 === 3 ? [] : list(`c${round}_${i}`),
        );
      }),
    );
    await expectAlike(bot.id);
  }
});

test.each([true, false])(
  'a setter that is delayed between its commit and its copy does not undo a later change (earlier copy present: %s)',
  async (copied) => {
    const [one, two] = nodes as [TestNode, TestNode];
    const bot = await makeBot(one, await makeUser(one));
    if (copied) await two.store.bots.commands(bot.id);
    let passed = () => {};
    const held = new Promise<void>((resolve) => {
      passed = resolve;
    });
    let arrived = () => {};
    const arriving = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    one.hooks.call = async (name, run) => {
      if (name === 'control/write') {
        arrived();
        await held;
      }
      return run();
    };
    const late = one.store.bots.setCommands(bot.id, 'default|', list('first'));
    await arriving;
    await two.store.bots.setTexts(bot.id, { name: { '': 'Renamed' } });
    await two.store.bots.setCommands(bot.id, 'default|', list('second'));
    passed();
    await late;
    one.hooks.call = (_, run) => run();
    expect(await stored(bot.id)).toEqual({ 'default|': list('second') });
    await expectAlike(bot.id);
  },
);

test('a bot has commands for at most 100 combinations of scope and language, even if several nodes set them', async () => {
  const [one] = nodes as [TestNode];
  const bot = await makeBot(one, await makeUser(one));
  const free = 3;
  for (let i = 0; i < limits.command_scopes_max - free; i++)
    await one.store.bots.setCommands(bot.id, `chat:-${i}|${i % 2 === 0 ? '' : 'en'}`, list('c'));
  const before = Object.keys((await stored(bot.id)) ?? {}).length;
  expect(before).toBe(limits.command_scopes_max - free);
  const tried = await Promise.allSettled(
    Array.from({ length: 12 }, (_, i) =>
      (nodes[i % 2] as TestNode).store.bots.setCommands(bot.id, `chat_member:-1:${i}|`, list('c')),
    ),
  );
  const refused = tried.filter((each) => each.status === 'rejected');
  expect(refused.length).toBe(12 - free);
  for (const { reason } of refused) expect(reason.message).toBe('Bad Request: too many command scopes');
  expect(Object.keys((await stored(bot.id)) ?? {}).length).toBe(limits.command_scopes_max);
  // The bot now has the maximum number of scopes. It can still replace the commands of one of its scopes. It can also
  // add a new scope after it has removed the commands of another scope.
  await one.store.bots.setCommands(bot.id, 'chat:-0|', list('other'));
  await one.store.bots.setCommands(bot.id, 'chat:-0|', []);
  await one.store.bots.setCommands(bot.id, 'default|', list('d'));
  await expectAlike(bot.id);
});

test('the commands of a bot have at most 128 KiB', async () => {
  const [one] = nodes as [TestNode];
  const bot = await makeBot(one, await makeUser(one));
  const longest = (word: string) =>
    Array.from({ length: limits.commands_max }, (_, i) => ({
      command: `c${i}`.padEnd(limits.command_name_length_max, 'x'),
      description: word.repeat(limits.command_description_length_max),
    }));
  await one.store.bots.setCommands(bot.id, 'default|', longest('🐦'));
  const before = await stored(bot.id);
  await expect(one.store.bots.setCommands(bot.id, 'default|en', longest('x'))).rejects.toThrow(
    'Bad Request: bot commands are too long',
  );
  expect(await stored(bot.id)).toEqual(before);
  await expectAlike(bot.id);
  await one.store.bots.setCommands(bot.id, 'default|', []);
  await one.store.bots.setCommands(bot.id, 'default|en', longest('x'));
  await expectAlike(bot.id);
});
