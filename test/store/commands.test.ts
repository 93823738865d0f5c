/** The commands of a bot that several nodes set at once: Postgres and what every node answers end alike. */
import { afterAll, beforeAll, expect, test } from 'vitest';
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

test('setters and removers of one scope and of several, on two nodes, while the copy is evicted', async () => {
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
  'a setter that is held between its commit and its copy, with a copy of before: %s',
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
