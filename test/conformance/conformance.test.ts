/**
 * Runs `petrel conformance` against a service, a proxy that changes the answers of the service, and servers that always
 * give the same answer.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { invalidCalls } from '../../src/conformance/parameters.js';
import type { Report } from '../../src/conformance/report.js';
import { checkServer, checks, runConformance } from '../../src/conformance/run.js';
import { freePort } from '../../src/dev/processes.js';
import { methods } from '../../src/methods/methods.gen.js';
import { petrel } from '../support/command.js';
import { temporaryFolder } from '../support/servers.js';
import { resultOf, type Service, type TestBot } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { longTest } from '../support/tiers.js';
import { type Fault, startAnsweringServer, startFaultyProxy } from './faulty_proxy.js';

let service: Service;
onSharedService((running) => {
  service = running;
});

const servers: Array<{ close(): unknown }> = [];
afterAll(() => {
  for (const server of servers) server.close();
});

interface Scene {
  readonly bot: TestBot;
  readonly options: Parameters<typeof checkServer>[1] & {
    readonly chat: number;
    readonly group: number;
    readonly channel: number;
    readonly secondToken: string;
  };
}

const rightNames = ['pin_messages', 'delete_messages', 'change_info', 'invite_users']
  .concat(['restrict_members', 'promote_members', 'post_messages', 'edit_messages'])
  .map((name) => [`can_${name}`, true]);

async function openScene(): Promise<Scene> {
  const owner = await service.newUser('olga');
  const [bot, other] = [await service.newBot(owner, 'conform'), await service.newBot(owner, 'second')];
  await service.openChat(owner, bot);
  const group = await service.newGroup(owner, 'Group', [bot, other]);
  const { id: channel } = await resultOf(
    service.app(owner, 'POST', '/api/chats', { type: 'channel', title: 'News' }),
  );
  const member = { status: 'administrator', rights: Object.fromEntries(rightNames) };
  for (const chat of [group, channel])
    await resultOf(service.app(owner, 'PUT', `/api/chats/${chat}/members/${bot.id}`, member));
  const webhook = 'https://127.0.0.1:8443/hook';
  const places = { chat: owner.id, group, channel, webhook };
  return { bot, options: { ...places, token: bot.token, secondToken: other.token } };
}

const stateOf = (state: string, report: Report) =>
  report.checks.filter((each) => each.state === state).map(({ proves }) => proves);

/**
 * Methods that never succeed in this test, because they need a person, cannot be undone by the bot, or return a stream.
 */
const alwaysRefused = [
  ...['leaveChat', 'answerInlineQuery', 'approveChatJoinRequest', 'declineChatJoinRequest'],
  ...['setMessageReaction', 'answerCallbackQuery', 'streamUpdates'],
];

test('every check passes against a Petrel service, and nearly every method succeeds', {
  timeout: 300_000,
}, async () => {
  const { options } = await openScene();
  const succeeded = new Set<string>();
  const proxy = await startFaultyProxy(service.fronts[0].url, ({ method, status, body }) => {
    if (status === 200) succeeded.add(method);
    return { status, body };
  });
  servers.push(proxy);
  const report = await checkServer(proxy.url, options);
  expect(report.checks.filter(({ state }) => state !== 'passed')).toEqual([]);
  expect(report.checks.length).toBe(checks.length);
  expect(report.left).toEqual([]);
  const refused = methods.map(({ name }) => name).filter((name) => !succeeded.has(name));
  expect(refused).toEqual(alwaysRefused);
});

test.each(methods.flatMap(({ name, params }) => (params === null ? [] : [[name, params] as const])))(
  'the smallest call of %s is accepted, and refused without one of its parameters',
  (_, params) => {
    const { base, missing } = invalidCalls(params);
    expect(params.safeParse(base).success).toBe(true);
    expect(missing.length).toBe(Object.keys(base).length);
  },
);

/** The faults of the proxy. Each fault changes one kind of answer. */
const faulty: Fault = ({ method, type, status, body }) => {
  const description = String(body.description ?? '');
  if (method === 'getFile' && status === 200) {
    const { file_path: _, ...result } = body.result;
    return { status, body: { ok: true, result } };
  }
  if (method === 'sendDice' && status === 200)
    return { status, body: { ok: true, result: { ...body.result, sides: 6 } } };
  if (method === 'setMyName' && description.includes('language'))
    return { status: 200, body: { ok: true, result: true } };
  if (method === 'pinChatMessage' && status === 401)
    return { status: 403, body: { ...body, error_code: 403 } };
  if (method === 'getMyDescription' && type.startsWith('multipart'))
    return { status: 200, body: { ok: true, result: { description: '' } } };
  if (method === 'stopPoll' && description.includes('closed'))
    return { status, body: { ...body, description: 'Bad Request: poll is closed' } };
  return { status, body };
};

longTest(
  'if a proxy breaks some answers, only the checks of these answers fail',
  {
    timeout: 180_000,
  },
  async () => {
    const { options } = await openScene();
    const proxy = await startFaultyProxy(service.fronts[0].url, faulty);
    servers.push(proxy);
    const only = [
      'settings of the bot',
      'media:',
      'setMy',
      'getMy',
      'getFile',
      'pinChatMessage',
      'sendDice',
      'stopPoll',
    ];
    const report = await checkServer(proxy.url, { ...options, only });
    expect(stateOf('failed', report)).toEqual([
      'pinChatMessage refuses an unknown token',
      'getMyDescription reads parameters in every encoding',
      'setMyName refuses a wrong value of each parameter',
      'setMyName reads parameters in every encoding',
      'setMyName sets up to 64 characters for a language',
      'photos are uploaded, downloaded and sent again',
      'locations, venues, contacts and dice are sent',
      'polls are sent and closed',
    ]);
    expect(report.passed).toBeGreaterThan(40);
  },
);

longTest.each([
  [200, { ok: true, result: true }],
  [400, { ok: false, error_code: 400, description: 'Bad Request' }],
])(
  'no check except the check of getMe passes against a server that always answers %i',
  async (status, body) => {
    const server = await startAnsweringServer(status, () => JSON.stringify(body));
    servers.push(server);
    const ids = { chat: 1, group: -1, channel: -2, webhook: 'https://example.org/' };
    const report = await checkServer(server.url, { ...ids, token: '1:A', secondToken: '1:A' });
    expect(stateOf('skipped', report)).toEqual([]);
    expect(stateOf('passed', report)).toEqual(['the colon of a token may be escaped']);
  },
);

longTest(
  'a report contains no part of a token, even if the server repeats the path of each call in its answer',
  async () => {
    const server = await startAnsweringServer(404, (path) => `Cannot find ${path}`);
    servers.push(server);
    const secret = 'Zq3vN8xLr5Tk2Wm7Yp4Hs9Jd6Fg1Bc0Va-_';
    const other = secret.split('').toReversed().join('');
    const tokens = { token: `1:${secret}`, secondToken: `2:${other}` };
    const report = await checkServer(server.url, { chat: 1, group: -1, ...tokens });
    expect(report.failed).toBeGreaterThan(300);
    const text = JSON.stringify(report);
    for (const each of [secret, other])
      for (let i = 0; i + 8 <= each.length; i++) expect(text).not.toContain(each.slice(i, i + 8));
  },
);

test('a report contains no token, even if an error text of the server contains the request path with the token', async () => {
  const { bot, options } = await openScene();
  const proxy = await startFaultyProxy(service.fronts[0].url, ({ method, status, body }) =>
    method === 'deleteMessages'
      ? { status: 404, body: { ok: false, error_code: 404, description: `no /bot${bot.token}/${method}` } }
      : { status, body },
  );
  servers.push(proxy);
  const only = ['locations, venues, contacts and dice are sent'];
  const report = await checkServer(proxy.url, { token: bot.token, chat: options.chat, only });
  expect(report.passed).toBe(1);
  expect(report.left).toEqual([expect.stringContaining('could not be deleted: 404 no /bot')]);
  expect(JSON.stringify(report)).not.toContain(bot.token.split(':')[1]);
});

test('the command prints the report and writes it to a file, skips checks whose option is missing, and exits with 1 if a check fails', {
  timeout: 180_000,
}, async () => {
  const { bot } = await openScene();
  const file = join(temporaryFolder(), 'report.json');
  const url = service.fronts[0].url;
  const env = { PETREL_CONFORMANCE_TOKEN: bot.token };
  const well = await petrel(env, 'conformance', `${url}/`, '--only', 'requests:,channels:', '--json', file);
  expect(well).toMatchObject({ code: 0, log: '' });
  expect(well.out).toContain('requests: 12 of 12 passed\n');
  expect(well.out).toContain('  skipped: posts are created, edited and deleted\n    no --channel given\n');
  expect(well.out).toMatch(/^12 passed, 0 failed, 2 skipped; \d+ requests in \d+\.\d s$/m);
  const report = JSON.parse(readFileSync(file, 'utf8'));
  expect(report).toMatchObject({
    schema: 'petrel-conformance',
    bot: bot.id,
    passed: 12,
    failed: 0,
    skipped: 2,
  });
  expect(report.checks).toContainEqual({
    subject: 'requests',
    proves: 'an unknown path answers 404',
    state: 'passed',
    ms: expect.any(Number),
  });
  const proxy = await startFaultyProxy(url, faulty);
  servers.push(proxy);
  const ill = await petrel(env, 'conformance', proxy.url, '--only', 'getMyDescription');
  expect(ill.code).toBe(1);
  expect(ill.out).toContain('  failed: getMyDescription reads parameters in every encoding\n');
  for (const { out, log } of [well, ill]) expect(out + log).not.toContain(bot.token);
});

longTest('the command exits with 1 if a token is unknown', async () => {
  const { bot } = await openScene();
  const wrong = await petrel({}, 'conformance', service.fronts[0].url, '--token', `${bot.token}x`);
  expect(wrong.code).toBe(1);
  expect(wrong.log).toContain('petrel: getMe with --token answered 401');
});

test('a run is not successful if the server is down or no check ran', async () => {
  const { bot } = await openScene();
  const print = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  onTestFinished(() => print.mockRestore());
  await expect(runConformance(`http://127.0.0.1:${await freePort()}`, { token: bot.token })).rejects.toThrow(
    'the server could not be reached: connection refused',
  );
  const options = { token: bot.token, only: ['no such check'] };
  expect(await runConformance(service.fronts[0].url, options)).toBe(false);
});

test('listing the checks shows when each check is skipped, and calls no method', async () => {
  const print = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  onTestFinished(() => print.mockRestore());
  expect(await runConformance('http://127.0.0.1:1', { token: '', list: true })).toBe(true);
  expect(print.mock.lastCall?.[0]).toContain(
    'channels: posts are created, edited and deleted (skipped if no --channel given)\n',
  );
});
