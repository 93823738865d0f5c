import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

const documents = ['README.md', ...readdirSync('infra/docs').map((name) => `infra/docs/${name}`)];
const blocks = documents.flatMap((path) =>
  [...readFileSync(path, 'utf8').matchAll(/^ *```sh test\n([\s\S]*?)^ *```/gm)].map(([, text = '']) => ({
    path,
    text,
  })),
);
const commands = blocks.flatMap(({ path, text }) =>
  text
    .replace(/\\\n/g, ' ')
    .split('\n')
    .map((command) => ({ path, command: command.trim() }))
    .filter(({ command }) => command !== '' && !command.startsWith('#')),
);

let service: Service;
let alice: TestUser;
let bot: TestBot;

onSharedService(async (running) => {
  service = running;
  alice = await service.newUser('alice');
  bot = await service.newBot(alice, 'documented');
});

test('more than three commands are found in the documents', () => {
  expect(commands.length).toBeGreaterThan(3);
});

test.each(commands)('$path: $command', async ({ command }) => {
  const variables = {
    ...process.env,
    URL: service.fronts[0].url,
    ALICE: `Authorization: Bearer ${alice.token}`,
    ADMIN: service.adminToken,
    BOT_URL: `${service.fronts[0].url}/bot${bot.token}`,
    PAYMENTS_URL: 'https://127.0.0.1:2/payments',
    CANARY_URL: 'https://127.0.0.1:2/canary',
  };
  const setUp = 'set -o pipefail; dev() { echo "$ADMIN"; };';
  const { stdout } = await promisify(execFile)('bash', ['-ec', `${setUp} ${command}`], { env: variables });
  expect(stdout).not.toBe('');
  if (command.startsWith('curl')) expect(JSON.parse(stdout)).toMatchObject({ ok: true });
});

test('the documented commands for webhook routes set two routes and delete one route', async () => {
  expect(await resultOf(service.bot(bot, 'getWebhookRoutes'))).toMatchObject([
    { name: 'payments', url: 'https://127.0.0.1:2/payments', allowed_updates: ['callback_query'] },
  ]);
});
