import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { atMost, report as figures } from '../faults/report.js';
import { eventually } from '../faults/world.js';
import { makeCertificate } from '../support/certificates.js';
import { petrel } from '../support/command.js';
import { startReceiver } from '../support/receivers.js';
import { resultOf, type TestBot, type TestUser } from '../support/service.js';
import { longTest } from '../support/tiers.js';
import { type LeaksWorld, makePartner, type Partner, signatureOf, startLeaksWorld } from './leaks_world.js';

let world: LeaksWorld;
let owner: TestUser;
const [partner, other] = [makePartner('first'), makePartner('second')] as [Partner, Partner];
const place = 'https://code.example/some/repository/file.txt?raw=1';
const item = (token: string, url: string = place) => ({
  ...{ token, type: 'petrel_bot_token', url, source: 'content' },
});
const label = (token: string, good: boolean) => ({
  token_hash: createHash('sha256').update(token).digest('hex'),
  token_type: 'petrel_bot_token',
  label: good ? 'true_positive' : 'false_positive',
});
const statusOf = async (bot: TestBot | { readonly token: string }, front = 0) =>
  (await world.service.bot(bot.token, 'getMe', {}, front)).status;

beforeAll(async () => {
  world = await startLeaksWorld();
  world.show(partner, other, makePartner('of another kind', 'P-384'));
  owner = await world.service.newUser('owner');
});
afterAll(() => world?.close());

test('a leaked bot token is blocked until the bot has a new token', async () => {
  const { service } = world;
  const bot = await service.newBot(owner, 'leaked');
  expect([await statusOf(bot), await statusOf(bot, 1)]).toEqual([200, 200]);
  const answer = await world.report(partner, [item(bot.token), item(bot.token), item('no token')]);
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual([label(bot.token, true), label(bot.token, true), label('no token', false)]);
  expect([await statusOf(bot), await statusOf(bot, 1)]).toEqual([401, 401]);
  const shown = await service.app(owner, 'GET', `/api/me/bots/${bot.id}/token`);
  expect([shown.status, shown.body.description]).toEqual([
    403,
    'Forbidden: the token was found in public and is blocked; issue a new one',
  ]);
  // If the same token is reported again, on another node, nothing changes and no second report is stored.
  expect((await world.report(other, [item(bot.token)], 1)).body).toEqual([label(bot.token, true)]);
  const noted = await world.query('select bot_id::int, reported_by, place from leaks where bot_id = $1', [
    bot.id,
  ]);
  expect(noted).toEqual([
    { bot_id: bot.id, reported_by: 'report', place: 'code.example/some/repository/file.txt' },
  ]);
  const fresh = await resultOf(service.app(owner, 'POST', `/api/me/bots/${bot.id}/regenerate_token`));
  expect([await statusOf(fresh), await statusOf(fresh, 1), await statusOf(bot)]).toEqual([200, 200, 401]);
  expect(await resultOf(service.app(owner, 'GET', `/api/me/bots/${bot.id}/token`))).toEqual({
    token: fresh.token,
  });
  expect((await world.report(partner, [item(bot.token)])).body).toEqual([label(bot.token, true)]);
  expect(await statusOf(fresh)).toBe(200);
});

test("operators see the place at which a person's leaked token was found", async () => {
  const { service } = world;
  const person = await service.newUser('person');
  const bot = await service.newBot(owner, 'listed');
  expect((await service.app(person, 'GET', '/api/me', undefined, 1)).status).toBe(200);
  const url = `https://code.example/${bot.token}/x`;
  await world.report(partner, [item(person.token), item(bot.token, url)]);
  expect((await service.app(person, 'GET', '/api/me', undefined, 1)).status).toBe(401);
  const { out, code } = await petrel(service.env, 'tokens', 'leaks');
  expect(code).toBe(0);
  expect(out).toMatch(
    new RegExp(`bot ${bot.id} @${bot.username} +blocked +report +code.example/${bot.id}:…/x`),
  );
  expect(out).toMatch(new RegExp(`person ${person.id} +removed +report +code.example/some`));
  expect(out).not.toContain(bot.token.slice(-30));
});

longTest(
  'an unresponsive node delays a leak report by at most the duration of its lease',
  async () => {
    const { service } = world;
    const [bot, silent] = [await service.newBot(owner, 'silent'), service.fronts[1]];
    // Puts the token into the node's cache. When the paused node resumes, it reads the waiting requests before the
    // message about the report. The node then refuses the token only because its lease has expired.
    const many = () => Promise.all(Array.from({ length: 30 }, () => statusOf(bot, 1)));
    expect(new Set(await many())).toEqual(new Set([200]));
    silent?.pause();
    const began = performance.now();
    const reporting = world.report(partner, [item(bot.token)]);
    expect((await reporting).body).toEqual([label(bot.token, true)]);
    const ms = Math.round(performance.now() - began);
    const after = many();
    silent?.resume();
    expect(new Set(await after)).toEqual(new Set([401]));
    // The report waits until the lease of the paused node ends. This may take less than a full lease, because the node
    // renewed its lease some time before the pause.
    expect(ms).toBeGreaterThan(limits.auth_lease_ms - limits.auth_lease_renew_ms);
    const most = limits.auth_lease_ms + limits.auth_lease_margin_ms + 5_000;
    figures('R16', 'a leaked token blocked, one node silent', {}, [atMost('ms', ms, most)]);
  },
  60_000,
);

test('deliveries of a bot with a leaked token are paused until the bot has a new token', async () => {
  const { service } = world;
  const person = await service.newUser('sender');
  const bot = await service.newBot(owner, 'hooked');
  await service.openChat(person, bot);
  const certificate = makeCertificate({ addresses: ['127.0.0.1'] });
  const received: string[] = [];
  // If Petrel executed the call in a webhook answer, a thief who set the webhook could act as the bot.
  const call = { method: 'sendMessage', chat_id: person.id, text: 'by the thief' };
  const receiver = await startReceiver(certificate, (_, response, body) => {
    received.push(JSON.parse(body.toString()).message.text);
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(call));
  });
  const url = `https://127.0.0.1:${receiver.port}/`;
  const write = (text: string) =>
    resultOf(service.app(person, 'POST', `/api/chats/${bot.id}/messages`, { text }));
  try {
    const settings = { url, certificate: certificate.cert, drop_pending_updates: true };
    await resultOf(service.bot(bot, 'setWebhook', settings));
    await write('one');
    await eventually('a delivery', () => received.includes('one'));
    await world.report(partner, [item(bot.token)]);
    await write('two');
    await write('three');
    const fresh = await resultOf(service.app(owner, 'POST', `/api/me/bots/${bot.id}/regenerate_token`));
    expect(new Set(received)).toEqual(new Set(['one']));
    await eventually('all deliveries', () => received.includes('three'));
    // Removes duplicates, because an update may be delivered twice.
    expect([...new Set(received)]).toEqual(['one', 'two', 'three']);
    expect((await resultOf(service.bot(fresh, 'getWebhookInfo'))).url).toBe(url);
    const [noted] = (await resultOf(service.app(owner, 'GET', `/api/me/bots/${bot.id}/audit`))).items.filter(
      ({ event }: { event: string }) => event === 'leak_found',
    );
    expect(noted.details).toEqual({ where: 'code.example/some/repository/file.txt' });
  } finally {
    await receiver.close();
  }
});

test('a leak report changes nothing if its signature is missing or does not match its body', async () => {
  const { service, post } = world;
  const bot = await service.newBot(owner, 'kept');
  const body = JSON.stringify([item(bot.token)]);
  const good = signatureOf(partner, body);
  const stranger = makePartner('first');
  const refused = [
    ['with the id of another key', () => post(body, 'second', good)],
    ['with the id of an unknown key', () => post(body, 'third', good)],
    ['forged', () => post(body, 'first', signatureOf(stranger, body))],
    ['without a signature', () => post(body, 'first', '')],
    ['without a key id', () => post(body, '', good)],
    ['with another space in the body', () => post(body.replace('[', '[ '), 'first', good)],
    ['with a line break after the body', () => post(`${body}\n`, 'first', good)],
    ['with the signature of another body', () => post(body, 'first', signatureOf(partner, '[]'))],
    [
      'with a character that Base64 does not have',
      () => post(body, 'first', good.replaceAll('=', '').replace(/$/, '!')),
    ],
    ['by a key on an unsupported curve', () => post(body, 'of another kind', good)],
  ] as const;
  for (const [what, send] of refused) {
    const answer = await send();
    expect([what, answer.status, answer.body.description]).toEqual([what, 401, 'Unauthorized']);
  }
  expect(await statusOf(bot)).toBe(200);
  expect(await world.query('select 1 from leaks where bot_id = $1', [bot.id])).toEqual([]);
  // The signature is valid, but the body is not a list of tokens.
  for (const text of ['{"a":1}', '[{"type":"x"}]', '[[]]', 'x']) {
    const answer = await post(text, 'first', signatureOf(partner, text));
    expect([text, answer.status]).toEqual([text, 400]);
  }
  expect(world.fetched()).toBeLessThanOrEqual(4);
});

longTest(
  `a leak report blocks ${limits.leak_reports_max} tokens before it is answered`,
  async () => {
    const { service } = world;
    const bots = await world.manyBots(owner.id, limits.leak_reports_max);
    const used = bots.filter((_, i) => i % 100 === 0);
    // Puts every hundredth token into the caches of both nodes.
    for (const bot of used) expect([await statusOf(bot), await statusOf(bot, 1)]).toEqual([200, 200]);
    const began = performance.now();
    const answer = await world.report(
      partner,
      bots.map(({ token }) => item(token)),
    );
    const ms = Math.round(performance.now() - began);
    expect(answer.status).toBe(200);
    expect(new Set(answer.body.map((each: { label: string }) => each.label))).toEqual(
      new Set(['true_positive']),
    );
    const after = await Promise.all(used.flatMap((bot) => [statusOf(bot), statusOf(bot, 1)]));
    // On a busy machine, some calls with leaked tokens may get 503, but none may get 200.
    expect(after).toContain(401);
    expect(after).not.toContain(200);
    figures('R16', 'leaked tokens blocked', { tokens: bots.length }, [atMost('ms', ms, 2_000)]);
    const copies = await world.query(
      "select count(*)::int as left from control_outbox where subject = 'bot' and subject_id >= $1",
      [bots[0]?.id],
    );
    expect(copies).toEqual([{ left: 0 }]);
    const [{ blocked } = {}] = await world.query(
      "select count(*)::int as blocked from bots where blocked_hmac = token_hmac and username like 'many%'",
    );
    expect(blocked).toBe(bots.length);
    const noted = await world.query(
      `select (select count(distinct bot_id) from leaks where bot_id >= $1)::int as leaks,
            (select count(distinct bot_id) from bot_audit where event = 'leak_found' and bot_id >= $1)::int as audited,
            (select count(distinct notice->>'bot') from notices
              where notice->>'kind' = 'leak_found' and (notice->>'bot')::bigint >= $1 and user_id = $2
                and notice->>'username' = 'many_' || (notice->>'bot') || '_bot')::int as told`,
      [bots[0]?.id, owner.id],
    );
    expect(noted).toEqual([{ leaks: bots.length, audited: bots.length, told: bots.length }]);
    const one = await world.report(
      partner,
      [...bots, bots[0]].map((bot) => item(bot?.token ?? '')),
    );
    expect(one.status).toBe(400);
    expect(service.fronts[0].log()).not.toContain(bots[0]?.token);
  },
  60_000,
);
