/** Tests `getUpdates` with `consumer` (decision 0067). */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Bot } from 'grammy';
import { Telegraf } from 'telegraf';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let owner: TestUser;
let bot: TestBot;
let people: TestUser[];
const stops: Array<() => Promise<void>> = [];

onSharedService(async (running) => {
  service = running;
  owner = await service.newUser('owner');
  people = await Promise.all(Array.from({ length: 8 }, () => service.newUser('person')));
});
beforeEach(async () => {
  bot = await service.newBot(owner, 'shared');
  for (const person of people) await service.openChat(person, bot);
  await resultOf(call({ offset: -1 }));
  const [last] = await resultOf(call({}));
  await resultOf(call({ offset: last.update_id + 1 }));
});
afterEach(async () => {
  await Promise.all(stops.splice(0).map((stop) => stop()));
});

const call = (params: Readonly<Record<string, unknown>>, front = 0) =>
  service.bot(bot, 'getUpdates', params, front);
const say = (person: TestUser, text: string) =>
  resultOf(service.app(person, 'POST', `/api/chats/${bot.id}/messages`, { text }));
const sayAll = async (text: string) => {
  for (const person of people) await say(person, text);
};

/** Returns a `fetch` function that adds the header with the consumer's name to each request. */
const fetchAs =
  (name: string, timeout = ''): typeof fetch =>
  (url, init) => {
    const headers = new Headers(init?.headers);
    headers.set('X-Service-Consumer', name);
    if (timeout !== '') headers.set('X-Service-Consumer-Timeout', timeout);
    return fetch(url, { ...init, headers });
  };

test('consumers on two fronts share the updates', async () => {
  for (const [front, consumer] of ['one', 'two'].entries()) await resultOf(call({ consumer }, front));
  await sayAll('hello');
  const [one, two] = [
    await resultOf(call({ consumer: 'one' })),
    await resultOf(call({ consumer: 'two' }, 1)),
  ];
  expect(one.length + two.length).toBe(people.length);
  await resultOf(call({ consumer: 'one', offset: (one.at(-1)?.update_id ?? 0) + 1 }, 1));
  const { pending_update_count } = await resultOf(service.bot(bot, 'getWebhookInfo'));
  expect(pending_update_count).toBe(two.length);
});

test('unmodified grammY bots with the consumer header share the updates, and all updates of a chat go to the same bot', async () => {
  const got: string[] = [];
  for (const name of ['one', 'two', 'three']) {
    const client = { apiRoot: service.fronts[0].url, fetch: fetchAs(name, '30') as never };
    const library = new Bot(bot.token, { client });
    library.on('message:text', (ctx) => void got.push(`${ctx.chat.id} ${ctx.message.text} ${name}`));
    library.catch((error) => {
      throw error;
    });
    const ended = library.start();
    stops.push(async () => {
      await library.stop();
      await ended;
    });
    await expect.poll(() => library.isRunning()).toBe(true);
  }
  for (const text of ['1', '2', '3']) await sayAll(text);
  await expect.poll(() => got.length).toBe(3 * people.length);
  for (const { id } of people) {
    const own = got.filter((each) => each.startsWith(`${id} `)).map((each) => each.split(' '));
    expect(own.map(([, text]) => text)).toEqual(['1', '2', '3']);
  }
  await expect
    .poll(async () => (await resultOf(service.bot(bot, 'getWebhookInfo'))).pending_update_count)
    .toBe(0);
});

const root = fileURLToPath(new URL('../..', import.meta.url));
const [, printed] = /### Several processes.*?```js\n(.*?)```/s.exec(
  readFileSync(`${root}/infra/docs/bots.md`, 'utf8'),
) as unknown as [string, string];

function startPrinted(name: string): ChildProcess {
  const env = { ...process.env, WORKER: name, API_ROOT: service.fronts[0].url, BOT_TOKEN: bot.token };
  const child = spawn(process.execPath, ['--input-type=module', '-e', printed], {
    ...{ cwd: root, env, stdio: 'ignore' },
  });
  const ended = once(child, 'exit');
  stops.push(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return child;
}

test('the example program of the documentation answers every message, even if one of its processes is killed', async () => {
  const textsOf = async (person: TestUser) =>
    (await resultOf(service.app(person, 'GET', `/api/chats/${bot.id}/messages?limit=100`))).items.map(
      (item: { readonly text?: string }) => item.text,
    ) as string[];
  const answered = (text: string) =>
    expect
      .poll(
        async () => {
          const all = await Promise.all(people.map(textsOf));
          return all.filter((texts) => texts.includes(`echo: ${text}`)).length;
        },
        { timeout: 30_000, interval: 200 },
      )
      .toBe(people.length);
  const [first] = ['one', 'two'].map(startPrinted);
  await sayAll('both');
  await answered('both');
  first?.kill('SIGKILL');
  await sayAll('one');
  await answered('one');
});

test('an unmodified Telegraf bot shares the updates with a grammY bot', async () => {
  const got: string[] = [];
  const client = { apiRoot: service.fronts[0].url, fetch: fetchAs('grammy') as never };
  const first = new Bot(bot.token, { client });
  first.on('message:text', (ctx) => void got.push(ctx.message.text));
  const ended = first.start();
  stops.push(async () => {
    await first.stop();
    await ended;
  });
  // Telegraf has no option for headers, so its calls send the consumer as a parameter.
  const second = new Telegraf(bot.token, { telegram: { apiRoot: service.fronts[0].url } });
  const plain = second.telegram.callApi.bind(second.telegram);
  second.telegram.callApi = ((method: string, payload: object, more: object) =>
    plain(
      method as never,
      (method === 'getUpdates' ? { ...payload, consumer: 'telegraf' } : payload) as never,
      more,
    )) as never;
  second.on('message', (ctx) => void got.push(ctx.text ?? ''));
  const launched = second.launch();
  stops.push(async () => {
    second.stop();
    await launched;
  });
  for (const text of ['1', '2']) await sayAll(text);
  await expect.poll(() => got.length).toBe(2 * people.length);
});

test('in a poll, the parameter `consumer` overrides the consumer header', async () => {
  await sayAll('hello');
  const url = `${service.fronts[0].url}/bot${bot.token}/getUpdates`;
  const { result } = (await (await fetchAs('header')(`${url}?consumer=parameter`)).json()) as {
    readonly result: unknown[];
  };
  expect(result).toHaveLength(people.length);
  expect(await resultOf(call({ consumer: 'header' }))).toEqual([]);
  expect(await resultOf(call({ consumer: 'parameter' }))).toHaveLength(people.length);
});

test('a poll without a consumer is refused while consumers are active', async () => {
  await resultOf(call({ consumer: 'one' }));
  const refused = await call({}, 1);
  expect([refused.status, refused.body]).toEqual([
    409,
    {
      ...{ ok: false, error_code: 409 },
      description: "Conflict: can't use getUpdates method without consumer while consumers are active",
    },
  ]);
  await expect.poll(async () => (await call({})).status, { timeout: 40_000 }).toBe(200);
});

test.each(['x'.repeat(33), 'a b', 'a:b', 'é'])('the consumer name "%s" is refused', async (consumer) => {
  const { status, body } = await call({ consumer });
  expect([status, body.description]).toEqual([
    400,
    'Bad Request: parameter "consumer" must be 1 to 32 letters, digits, dots, hyphens and underscores',
  ]);
});

test('a consumer cannot use a negative offset, and the duration of its lease is limited', async () => {
  const { status, body } = await call({ consumer: 'one', offset: -1 });
  expect([status, body.description]).toEqual([
    400,
    'Bad Request: parameter "offset" must be at least 0 if consumer is set',
  ]);
  await resultOf(call({ consumer: 'one', consumer_timeout: 1 }));
  await resultOf(call({ consumer: 'one', consumer_timeout: 100_000 }));
  expect((await call({ consumer: 'one', consumer_timeout: 'soon' })).status).toBe(400);
});
