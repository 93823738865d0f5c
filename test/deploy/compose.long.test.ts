/**
 * Starts everything in the unchanged infra/deploy/compose.yaml: the scripts that create the secrets and the
 * certificate, a Redis Cluster, Postgres, the roles, and HAProxy with TLS. Runs with `npm run test:image`.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { Agent as SecureAgent } from 'node:https';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Bot } from 'grammy';
import { Agent } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createWorld, type World, type WorldCalls } from '../faults/world.js';
import { type Composition, compose } from '../support/compose.js';
import { nothingWrong } from '../support/ledger.js';
import { temporaryFolder } from '../support/servers.js';
import { type Answer, itemsOf, resultOf } from '../support/service.js';
import { createCalls } from '../support/service_calls.js';

const deploy = fileURLToPath(new URL('../../infra/deploy', import.meta.url));
const file = join(deploy, 'compose.yaml');
const folder = temporaryFolder();
const certificate = join(folder, 'cert.pem');
const net = `10.${randomInt(64, 192)}.${randomInt(256)}`;
const script = (name: string, ...args: string[]) =>
  execFileSync(join(deploy, name), args, { encoding: 'utf8' });

let variables: Record<string, string>;
let composition: Composition;
let agent: Agent;
let calls: WorldCalls;
let world: World;
let pem: string;
const failures: string[] = [];
const front = { url: '' };
const addressOf = (name: string) => (composition.containers.get(name) as { address: string }).address;

/** Tests are not retried, because each test depends on the tests before it. */
const once = (timeout: number) => ({ retry: 0, timeout });

/** Clients call the proxy over the network. Every answer other than 200 is recorded in `failures`. */
function openCalls(): void {
  front.url = `https://${addressOf('proxy.1')}:8443`;
  agent = new Agent({ connect: { ca: pem, servername: 'localhost' }, connections: 64 });
  const made = createCalls([front as never], variables.ADMIN_TOKEN as string, agent, new Set());
  const noted = async (what: string, answer: Promise<Answer>) => {
    const got = await answer.catch((error: Error) => {
      failures.push(`${what}: ${error.message}`);
      throw error;
    });
    if (got.status !== 200) failures.push(`${what}: ${got.status} ${JSON.stringify(got.body)}`);
    return got;
  };
  calls = {
    ...made,
    app: (user, verb, path, body) => noted(`${verb} ${path}`, made.app(user, verb, path, body)),
    bot: (bot, method, params) => noted(method, made.bot(bot, method, params)),
  };
}

beforeAll(async () => {
  const pairs = script('make-secrets.sh').trim().split('\n');
  pem = script('make-certificate.sh', 'localhost');
  writeFileSync(certificate, pem, { mode: 0o600 });
  const secrets = pairs.map((line) => [line.split('=')[0], line.slice(line.indexOf('=') + 1)]);
  variables = { ...Object.fromEntries(secrets), CERT_FILE: certificate, NET: net };
  composition = compose(file, variables);
  await composition.up();
  openCalls();
  // The time limit is high, because a start took 160 s on two cores at a load average of 20.
}, 400_000);
afterAll(async () => {
  await Promise.all([world?.stop(), composition?.remove()]);
  await agent?.destroy();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

/** A bot on a standard client library replies to a person. The bot knows only the URL and the trusted certificate. */
async function echoes(): Promise<void> {
  const person = await calls.newUser('person');
  const made = await calls.newBot(person, 'echo');
  await calls.openChat(person, made);
  const secure = new SecureAgent({ ca: pem, servername: 'localhost' });
  const bot = new Bot(made.token, { client: { apiRoot: front.url, baseFetchConfig: { agent: secure } } });
  bot.on('message:text', (context) => context.reply(`you said ${context.message.text}`));
  const polling = bot.start();
  const chat = `/api/chats/${made.id}/messages`;
  await resultOf(calls.app(person, 'POST', chat, { text: 'hello' }));
  const texts = async () =>
    (await itemsOf(calls.app(person, 'GET', chat))).map(({ text }: { text: string }) => text);
  await expect.poll(texts, { timeout: 30_000 }).toContain('you said hello');
  await bot.stop();
  await polling;
  secure.destroy();
}

test.each(['docker', 'podman'])('%s compose accepts compose.yaml', (engine) => {
  if (spawnSync(engine, ['compose', 'version']).status !== 0)
    return console.log(`Skipped: ${engine} compose is not installed`);
  const ran = spawnSync(engine, ['compose', '-f', file, 'config', '--quiet'], {
    env: { ...process.env, ...variables },
    encoding: 'utf8',
  });
  expect(ran.stderr).toBe('');
  expect(ran.status).toBe(0);
});

test('the Compose file starts every service', async () => {
  const alive = [...composition.containers.values()].filter((each) => each.alive).map(({ name }) => name);
  expect(alive.sort()).toEqual(
    ['deliver.1', 'deliver.2', 'flush.1', 'flush.2', 'front-1.1', 'front-2.1', 'postgres.1', 'proxy.1']
      .concat([1, 2, 3, 4, 5, 6].map((n) => `redis-${n}.1`))
      .sort(),
  );
  const nodes = spawnSync('redis-cli', ['-h', `${net}.11`, 'cluster', 'nodes'], {
    env: { ...process.env, REDISCLI_AUTH: variables.REDIS_PASSWORD },
    encoding: 'utf8',
  }).stdout;
  expect(nodes.match(/ (myself,)?master /g)).toHaveLength(3);
  expect(nodes.match(/ slave /g)).toHaveLength(3);
});

test('a bot of the Compose installation answers over TLS', echoes);

test(
  'if the roles are restarted one after the other under load, no call fails and no message is lost',
  once(400_000),
  async () => {
    world = await createWorld(calls);
    world.poll(() => 0);
    const ended = new AbortController();
    // Each sender pauses 400 ms between two calls. Without the pauses, the calls of the test would exceed the default
    // limit of 30 calls per second, which also applies to the calls that read the history.
    const load = { count: Number.POSITIVE_INFINITY, signal: ended.signal, front: () => 0, restMs: 400 };
    let acknowledged = 0;
    const onAcknowledged = (total: number) => {
      acknowledged = total;
    };
    const loading = world.load({ ...load, onAcknowledged });
    const roles = [...composition.containers.keys()].filter((name) => /^(front|deliver|flush)/.test(name));
    try {
      for (const name of roles) {
        await sleep(2_000);
        const how = await composition.restart(name);
        expect(how, `${name}:\n${composition.containers.get(name)?.log.slice(-4_000)}`).toBe('exit code 0');
      }
      await sleep(2_000);
      await expect.poll(() => acknowledged, { timeout: 120_000 }).toBeGreaterThan(500);
    } finally {
      ended.abort();
      await loading;
    }
    const verdict = await world.settled();
    console.log(
      `Rolling restart of ${roles.length}: ${verdict.acknowledged} acknowledged, ${failures.length} failed`,
    );
    expect(failures).toEqual([]);
    expect(verdict).toMatchObject(nothingWrong);
  },
);

test(
  'the data of the Compose installation survives `down` and `up`, even though addresses change',
  once(400_000),
  async () => {
    const [before, former] = [await world.history(), addressOf('postgres.1')];
    await composition.down();
    await composition.up();
    front.url = `https://${addressOf('proxy.1')}:8443`;
    expect(addressOf('postgres.1')).not.toBe(former);
    expect(await world.history()).toEqual(before);
    await echoes();
    expect(failures).toEqual([]);
  },
);
