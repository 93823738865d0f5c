/** Tests `streamUpdates` and `confirmUpdates` (decision 0069). */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { openUpdates, type SourceOptions, type UpdateSource } from '../clients/update_source.js';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { longTest } from '../support/tiers.js';

let service: Service;
let owner: TestUser;
let bot: TestBot;
let people: TestUser[];
const stops: Array<() => unknown> = [];

onSharedService(async (running) => {
  service = running;
  owner = await service.newUser('owner');
  people = await Promise.all(Array.from({ length: 6 }, () => service.newUser('person')));
});
beforeEach(async () => {
  bot = await service.newBot(owner, 'streamed');
  for (const person of people) await service.openChat(person, bot);
  await confirmAll();
});
afterEach(async () => {
  await Promise.all(stops.splice(0).map((stop) => stop()));
});

async function confirmAll() {
  const [last] = await resultOf(call('getUpdates', { offset: -1 }));
  await resultOf(call('getUpdates', { offset: last.update_id + 1 }));
}
const call = (method: string, params: Readonly<Record<string, unknown>> = {}, front = 0) =>
  service.bot(bot, method, params, front);
const say = (text: string, person = people[0] as TestUser) =>
  resultOf(service.app(person, 'POST', `/api/chats/${bot.id}/messages`, { text }));
const pending = async () => (await resultOf(call('getWebhookInfo'))).pending_update_count;
const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `${from + i}`);

async function open(front = 0, options: SourceOptions = {}): Promise<UpdateSource> {
  const source = await openUpdates(service.fronts[front]?.url ?? '', bot.token, options);
  stops.push(() => source.cut());
  return source;
}

/** Returns the status and the description of the last event of a stream. */
async function ending(source: UpdateSource) {
  await source.over;
  return [source.end()?.error_code, source.end()?.description];
}

const byPoll = [
  409,
  'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running',
];
const byConsumers = "Conflict: can't use getUpdates method without consumer while consumers are active";
const byHook =
  "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";

test('a stream sends new updates in order, and confirms none of them', async () => {
  await say('before');
  const source = await open();
  expect(source.status).toBe(200);
  for (const text of numbers(0, 20)) await say(text);
  await source.received(21);
  expect(source.texts()).toEqual(['before', ...numbers(0, 20)]);
  expect(source.text()).toMatch(/^:\n\nretry: 1000\n\nid: \d+\nevent: update\ndata: \{/);
  expect(await pending()).toBe(21);
});

test('a stream sends the updates after its Last-Event-ID, or all unconfirmed updates without this header', async () => {
  const first = await open();
  for (const text of numbers(0, 4)) await say(text);
  const updates = await first.received(4);
  first.cut();
  await say('4');
  const headers = { 'Last-Event-ID': `${updates[2].update_id}` };
  const resumed = await open(1, { headers });
  await resumed.received(2);
  expect(resumed.texts()).toEqual(['3', '4']);
  await say('5');
  await resumed.received(3);
  expect(resumed.texts()).toEqual(['3', '4', '5']);
  const whole = await open();
  await whole.received(6);
  expect(whole.texts()).toEqual(numbers(0, 6));
});

test.each(['', 'x', '-1', '999999999999999', '1e3'])(
  'a stream ignores the invalid Last-Event-ID "%s"',
  async (id) => {
    await say('0');
    const source = await open(0, { headers: { 'Last-Event-ID': id } });
    await say('1');
    await source.received(2);
    expect(source.texts()).toEqual(['0', '1']);
  },
);

test('any front can confirm the updates of a stream, and an offset that is too low or unknown confirms nothing', async () => {
  const source = await open();
  for (const text of numbers(0, 5)) await say(text);
  const updates = await source.received(5);
  expect(await resultOf(call('confirmUpdates', { offset: updates[2].update_id + 1 }, 1))).toBe(true);
  expect(await pending()).toBe(2);
  for (const offset of [0, -5, 1, updates[2].update_id + 1, updates[4].update_id + 100])
    expect(await resultOf(call('confirmUpdates', { offset }, 1))).toBe(true);
  expect(await pending()).toBe(2);
  const { status, body } = await call('confirmUpdates');
  expect([status, body.description]).toEqual([400, 'Bad Request: parameter "offset" is required']);
  const next = await open(1);
  await next.received(2);
  expect(next.texts()).toEqual(['3', '4']);
});

test('offset and allowed_updates of a stream work as in a poll', async () => {
  for (const text of numbers(0, 3)) await say(text);
  const first = await open();
  const updates = await first.received(3);
  const second = await open(0, {
    params: { offset: updates[2].update_id, allowed_updates: '["edited_message"]' },
  });
  await second.received(1);
  const sent = await say('not sent');
  const edit = { text: 'edited' };
  await resultOf(
    service.app(people[0] as TestUser, 'PATCH', `/api/chats/${bot.id}/messages/${sent.message_id}`, edit),
  );
  const [, edited] = await second.received(2);
  expect([second.texts(), edited.edited_message.text]).toEqual([['2'], 'edited']);
  expect(await pending()).toBe(2);
});

test('a stream pauses at its limit of unconfirmed updates, and continues when these updates are confirmed', async () => {
  const source = await open(0, { params: { limit: '3' } });
  for (const text of numbers(0, 8)) await say(text);
  await source.received(3);
  let rounds = 0;
  for (let next = 3; next < 8; next++) {
    expect(source.texts()).toEqual(numbers(0, next));
    await resultOf(call('confirmUpdates', { offset: source.updates[next - 3].update_id + 1 }, next % 2));
    await source.received(next + 1);
    rounds++;
  }
  expect([rounds, await pending()]).toEqual([5, 3]);
});

test('a resumed stream counts the unconfirmed updates that its client already has', async () => {
  const first = await open();
  for (const text of numbers(0, 4)) await say(text);
  const updates = await first.received(4);
  const headers = { 'Last-Event-ID': `${updates[1].update_id}` };
  const source = await open(0, { headers, params: { limit: '3' } });
  await source.received(1);
  await resultOf(call('confirmUpdates', { offset: updates[0].update_id + 1 }));
  await source.received(2);
  expect(source.texts()).toEqual(['2', '3']);
});

test('a stream of large updates pauses at its byte limit', async () => {
  const source = await open();
  const text = '😀'.repeat(2_048);
  const count = Math.ceil(limits.script_read_bytes_max / 8_192) + 10;
  for (let i = 0; i < count; i++) await say(text, people[i % people.length]);
  const most = limits.script_read_bytes_max / 8_192 + 1;
  await expect.poll(() => source.text().length).toBeGreaterThan(limits.script_read_bytes_max / 4);
  await expect.poll(() => source.updates.length).toBeGreaterThan(most * 0.8);
  const paused = source.updates.length;
  expect(paused).toBeLessThanOrEqual(most);
  await resultOf(call('confirmUpdates', { offset: source.updates.at(-1).update_id + 1 }));
  await source.received(count);
}, 60_000);

test('a new stream ends an older stream, and a poll ends a stream', async () => {
  const first = await open();
  const second = await open(1);
  expect(await ending(first)).toEqual(byPoll);
  await resultOf(call('getUpdates'));
  expect(await ending(second)).toEqual(byPoll);
});

test('a stream ends a waiting poll', async () => {
  const poll = call('getUpdates', { timeout: 30 }, 1);
  let answered = false;
  void poll.then(() => {
    answered = true;
  });
  // Opens streams until the poll has ended, because the poll may reach the service after the first stream.
  await expect
    .poll(async () => {
      await open();
      return answered;
    })
    .toBe(true);
  const { status, body } = await poll;
  expect([status, body.description]).toEqual(byPoll);
});

test('a stream is refused while a webhook is set, and setWebhook ends a stream', async () => {
  const source = await open();
  await resultOf(call('setWebhook', { url: 'https://127.0.0.1:8443/' }, 1));
  expect(await ending(source)).toEqual([409, 'Conflict: terminated by setWebhook request']);
  const refused = await open();
  expect([refused.status, JSON.parse(refused.refused).description]).toEqual([409, byHook]);
  const confirmed = await call('confirmUpdates', { offset: 1 });
  expect([confirmed.status, confirmed.body.description]).toEqual([409, byHook]);
  await resultOf(call('deleteWebhook'));
  await say('later');
  const later = await open();
  await later.received(1);
  expect(later.texts()).toEqual(['later']);
});

test('while a consumer reads the updates of a bot, streams and polls without a consumer name are refused or ended', async () => {
  const plain = await open();
  const shared = await open(1, { params: { consumer: 'one' } });
  expect(await ending(plain)).toEqual(byPoll);
  const refused = await open();
  expect([refused.status, JSON.parse(refused.refused).description]).toEqual([409, byConsumers]);
  const confirmed = await call('confirmUpdates', { offset: 1 });
  expect([confirmed.status, confirmed.body.description]).toEqual([409, byConsumers]);
  await resultOf(call('getUpdates', { consumer: 'two' }));
  expect(shared.end()).toBeUndefined();
  await resultOf(call('getUpdates', { consumer: 'one' }));
  expect(await ending(shared)).toEqual(byPoll);
});

test('consumers share the updates of a bot over streams, and the chats of a dead consumer move to the other consumers', async () => {
  const names = ['one', 'two', 'three'];
  // A lease of ten seconds, so that a consumer keeps its lease even if a busy machine delays its renewals.
  const lease = { 'X-Service-Consumer-Timeout': '10' };
  const sources = await Promise.all(
    names.map((consumer, i) => open(i % 2, { headers: { 'X-Service-Consumer': consumer, ...lease } })),
  );
  const all = () => sources.flatMap((source) => source.texts());
  for (const text of ['a', 'b']) for (const [i, person] of people.entries()) await say(`${text}${i}`, person);
  await expect.poll(() => all().length).toBe(2 * people.length);
  for (const source of sources)
    for (const text of source.texts()) expect(source.texts()).toContain(`a${text.slice(1)}`);
  const [victim = 0] = sources.flatMap((source, i) => (source.updates.length > 0 ? [i] : []));
  const [dead] = sources.splice(victim, 1) as [UpdateSource];
  dead.cut();
  await expect.poll(() => new Set(all()).size, { timeout: 40_000 }).toBe(2 * people.length);
  // A surviving consumer has taken over chats, so an offset confirms only the update with the id `offset - 1`. The test
  // therefore confirms each update separately.
  for (const [i, consumer] of names.filter((_, i) => i !== victim).entries())
    for (const { update_id } of sources[i]?.updates ?? [])
      await resultOf(call('confirmUpdates', { offset: update_id + 1, consumer }, 1));
  await expect.poll(pending).toBe(0);
}, 90_000);

test('a resumed stream of a consumer sends the updates after Last-Event-ID', async () => {
  const params = { consumer: 'one' };
  const first = await open(0, { params });
  for (const text of numbers(0, 3)) await say(text);
  const updates = await first.received(3);
  first.cut();
  const second = await open(1, { params, headers: { 'Last-Event-ID': `${updates[0].update_id}` } });
  await second.received(2);
  expect(second.texts()).toEqual(['1', '2']);
  await resultOf(call('confirmUpdates', { offset: updates[1].update_id + 1, ...params }));
  const third = await open(0, { params });
  await third.received(1);
  expect(third.texts()).toEqual(['2']);
});

test('when a stream has reached its limit, a confirmation on another front lets the stream continue', async () => {
  const source = await open(0, { params: { consumer: 'one', limit: '2' } });
  for (const text of numbers(0, 4)) await say(text);
  const updates = await source.received(2);
  expect(source.texts()).toEqual(['0', '1']);
  await resultOf(call('confirmUpdates', { offset: updates[1].update_id + 1, consumer: 'one' }, 1));
  await source.received(4);
});

test('a stream ends with 401 when its token is revoked', async () => {
  const plain = await open();
  await resultOf(service.app(owner, 'POST', `/api/me/bots/${bot.id}/regenerate_token`));
  expect(await ending(plain)).toEqual([401, 'Unauthorized']);
});

test('a stream ends with 401 when its bot is deleted', async () => {
  const shared = await open(1, { params: { consumer: 'one' } });
  await resultOf(service.app(owner, 'DELETE', `/api/me/bots/${bot.id}`));
  expect(await ending(shared)).toEqual([401, 'Unauthorized']);
});

test('a stream ends with 401 when its bot is suspended', async () => {
  const source = await open();
  await resultOf(
    service.app({ token: service.adminToken }, 'POST', `/api/admin/bots/${bot.id}/suspension`, {}),
  );
  expect(await ending(source)).toEqual([401, 'Unauthorized']);
});

test('a client that stops reading for a moment gets every update in order', async () => {
  const source = await open();
  source.pause();
  const text = '😀'.repeat(1_000);
  for (let i = 0; i < 60; i++) await say(`${i} ${text}`, people[i % people.length]);
  source.resume();
  await source.received(60);
  expect(source.texts().map((each) => each.split(' ')[0])).toEqual(numbers(0, 60));
}, 60_000);

const root = fileURLToPath(new URL('../..', import.meta.url));
const [section = ''] = /### A stream.*?### /s.exec(readFileSync(`${root}/infra/docs/bots.md`, 'utf8')) ?? [];
const programs = [...section.matchAll(/```js\n(.*?)```/gs)].map(([, program]) => program as string);

function startProgram(program: string, worker: string): ChildProcess {
  const env = { ...process.env, WORKER: worker, API_ROOT: service.fronts[0].url, BOT_TOKEN: bot.token };
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    ...{ cwd: root, env, stdio: 'ignore' },
  });
  const ended = once(child, 'exit');
  stops.push(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return child;
}

longTest.each([
  ['grammY', programs[0] as string],
  ['fetch', programs[1] as string],
])(
  'the documented program for %s answers every message, even if the program is killed',
  async (_, program) => {
    expect(program.trimEnd().split('\n').length).toBeLessThanOrEqual(40);
    const textsOf = async (person: TestUser) =>
      (await resultOf(service.app(person, 'GET', `/api/chats/${bot.id}/messages?limit=100`))).items.map(
        (item: { readonly text?: string }) => item.text,
      ) as string[];
    const answered = (text: string) =>
      expect
        .poll(async () => {
          const all = await Promise.all(people.map(textsOf));
          return all.filter((texts) => texts.includes(`echo: ${text}`)).length;
        })
        .toBe(people.length);
    const first = startProgram(program, 'one');
    for (const person of people) await say('first', person);
    await answered('first');
    first.kill('SIGKILL');
    for (const person of people) await say('second', person);
    startProgram(program, 'one');
    await answered('second');
    await expect.poll(pending).toBe(0);
  },
  90_000,
);
