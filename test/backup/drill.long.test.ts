/**
 * Tests a drill: an operator restores a backup while the original installation keeps running. The restored installation
 * sends nothing to webhooks and browsers until the operator resumes it.
 */
import { createECDH } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { makeBrowser } from '../push/browser.js';
import { makeCertificate } from '../support/certificates.js';
import { petrel } from '../support/command.js';
import { startReceiver } from '../support/receivers.js';
import { freshDatabase, freshRedis, temporaryFolder } from '../support/servers.js';
import { resultOf, startService } from '../support/service.js';
import { elsewhere } from './installation.js';

const ends: Array<() => Promise<unknown>> = [];
afterAll(async () => {
  for (const end of ends.reverse()) await end();
}, 60_000);

test('an installation restored for a drill sends nothing to webhooks or browsers until an operator resumes the installation', async () => {
  const folder = temporaryFolder();
  mkdirSync(folder, { recursive: true });
  const certificate = makeCertificate({ addresses: ['127.0.0.1', '::1'] });
  writeFileSync(join(folder, 'authority.pem'), certificate.cert);
  const received: string[] = [];
  const receiver = await startReceiver(certificate, (request, response, body) => {
    received.push(`${request.url} ${body.toString()}`);
    response.writeHead(201).end();
  });
  ends.push(() => receiver.close());
  const origin = `https://127.0.0.1:${receiver.port}`;
  const key = createECDH('prime256v1');
  key.generateKeys();
  const extraEnv = {
    PARTITIONS: '8',
    VAPID_PRIVATE_KEY: Buffer.from(key.getPrivateKey('hex').padStart(64, '0'), 'hex').toString('base64url'),
    VAPID_SUBJECT: 'mailto:operator@example.org',
    PUSH_DELAY_MS: '1',
    NODE_EXTRA_CA_CERTS: join(folder, 'authority.pem'),
    WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32',
  };
  const original = await startService({ extraEnv });
  ends.push(() => original.stop());
  const owner = await original.newUser('olga');
  const bot = await original.newBot(owner, 'b');
  await original.openChat(owner, bot);
  await resultOf(original.app(owner, 'POST', '/api/me/push', makeBrowser(origin).subscription));
  await resultOf(original.bot(bot, 'setWebhook', { url: `${origin}/hook` }));
  await expect.poll(() => received.length, { timeout: 20_000 }).toBeGreaterThan(0);
  await original.deliver.stop();
  await resultOf(original.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text: 'before the backup' }));
  received.length = 0;

  const saved = await petrel(original.env, 'backup', join(folder, 'backup'));
  expect(saved, saved.log).toMatchObject({ code: 0 });
  const [redis, database] = await Promise.all([freshRedis(), freshDatabase()]);
  ends.push(redis.stop, database.drop);
  const env = elsewhere(original.env, redis, database.url);
  const restored = await petrel(env, 'restore', '--drill', join(folder, 'backup'));
  expect(restored, restored.log).toMatchObject({ code: 0 });
  expect(restored.out).toContain('nothing is sent to webhooks and browsers until "petrel resume"');

  const { TOKEN_PEPPER = '', TOKEN_KEYS = '' } = original.env;
  const drill = await startService({ redis, database, extraEnv: { ...extraEnv, TOKEN_PEPPER, TOKEN_KEYS } });
  ends.push(() => drill.stop());
  const say = (text: string) => resultOf(drill.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text }));
  await say('during the drill');
  await resultOf(drill.bot(bot, 'sendMessage', { chat_id: owner.id, text: 'a push' }));
  await sleep(4_000);
  await drill.deliver.stop();
  await drill.deliver.start();
  await say('after a restart');
  await sleep(4_000);
  expect(received).toEqual([]);
  const doctor = await petrel(drill.env, 'doctor');
  expect(doctor.out).toContain('this is a drill: nothing is sent to webhooks and browsers');
  const metrics = await (await fetch(`${drill.fronts[0].url}/metrics`)).text();
  expect(metrics).toMatch(/^petrel_outgoing_held(\{.*\})? 1$/m);
  const overview = await fetch(`${drill.fronts[0].url}/api/admin/overview`, {
    headers: { authorization: `Bearer ${drill.adminToken}` },
  });
  expect(await overview.text()).toContain('this is a drill');

  const resumed = await petrel(drill.env, 'resume');
  expect(resumed.out).toContain('all nodes start sending within seconds');
  await expect
    .poll(() => received.filter((text) => text.startsWith('/hook')).join('\n'), { timeout: 30_000 })
    .toMatch(/before the backup[\s\S]*during the drill[\s\S]*after a restart/);
  // No delivery was attempted while deliveries were paused, so the bot has no delivery error.
  const info = await resultOf(drill.bot(bot, 'getWebhookInfo'));
  expect(info.last_error_message ?? null).toBeNull();
  expect((await petrel(drill.env, 'resume')).out).toContain('this is not a drill');
}, 300_000);
