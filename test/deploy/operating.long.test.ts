/**
 * Runs the command blocks of infra/docs/operating.md on seven machines, which are network namespaces with separate file
 * systems. Four things differ from the document: the addresses are replaced, the packages are not installed as the
 * document says, `systemctl.sh` stands in for systemd, and the upgrade installs the same version in another folder.
 * Runs with `npm run test:image`.
 */
import { randomInt } from 'node:crypto';
import { copyFileSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { Agent } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findBinaries, postgresUser } from '../../src/dev/postgres_binaries.js';
import { createWorld, type World } from '../faults/world.js';
import { type Composition, compose } from '../support/compose.js';
import { nothingWrong } from '../support/ledger.js';
import { temporaryFolder } from '../support/servers.js';
import type { Answer, Service } from '../support/service.js';
import { createCalls } from '../support/service_calls.js';

const here = fileURLToPath(new URL('.', import.meta.url));
const checkout = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const net = `10.${randomInt(64, 192)}.${randomInt(256)}`;
const text = readFileSync(join(checkout, 'infra/docs/operating.md'), 'utf8').replaceAll('10.0.0.', `${net}.`);
const apps = ['app1', 'app2', 'app3', 'app4', 'app5'];
const folder = temporaryFolder();
const failures: string[] = [];
let machines: Composition;
let agent: Agent | undefined;
let world: World | undefined;
let secrets: string;

/** Returns the blocks of one language in a section of the document. Blocks inside lists are indented. */
function blocks(heading: string, language = 'sh'): string[] {
  const [, own] = new RegExp(`^#+ ${heading}.*\n([^]*?)(?=^#+ [A-Z0-9]|(?![^]))`, 'm').exec(text) ?? [];
  if (own === undefined) throw new Error(`the document has no part "${heading}"`);
  return [...own.matchAll(new RegExp(`^( *)\`\`\`${language}\\n(.*?)^ *\`\`\``, 'gms'))].map(
    ([, indent, block]) => (block as string).replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  );
}

const [prepare = '', petrel = ''] = blocks('Install');

/**
 * Runs commands in a shell on a machine. In this shell, `petrel` is the function that the document defines. If a
 * command fails, throws an error with the output of the commands and the logs of the systemd units.
 */
async function on(machine: string, commands: string): Promise<string> {
  const script = `set -e\ncd /root\n${petrel}\n${commands}`;
  const container = machines.containers.get(`${machine}.1`);
  const { how, out } = (await container?.run('env', 'HOME=/root', 'bash', '--norc', '-c', script)) ?? {
    how: '',
    out: '',
  };
  if (how === 'exit code 0') return out;
  // Shows the log of the unit, because only this log says why the unit did not start.
  const logs = await container?.run('sh', '-c', 'tail -n 20 /var/log/unit-*.log');
  throw new Error(`on ${machine}: ${how}\n${commands}\n${out}\n${logs?.out}`);
}
const addressOf = (machine: string) => machines.containers.get(`${machine}.1`)?.address;

async function startPostgres(): Promise<void> {
  const { initdb, postgres } = findBinaries();
  const { uid = 0, gid = 0 } = postgresUser() ?? {};
  const as = `setpriv --reuid=${uid} --regid=${gid} --clear-groups`;
  await on(
    'data',
    `install -d -o ${uid} -g ${gid} /var/lib/pg
     echo admin-password > /tmp/password
     ${as} ${initdb} --pgdata=/var/lib/pg/data --username=admin --pwfile=/tmp/password --auth=scram-sha-256 --encoding=UTF8 --locale=C
     echo "host all admin ${net}.1/32 scram-sha-256" >> /var/lib/pg/data/pg_hba.conf
     echo "host all petrel ${net}.0/24 scram-sha-256" >> /var/lib/pg/data/pg_hba.conf
     setsid ${as} ${postgres} -D /var/lib/pg/data -c listen_addresses=${net}.20 -c unix_socket_directories=/tmp </dev/null >/var/log/pg 2>&1 &`,
  );
  await expect
    .poll(() => asSuperuser('select 1').then(() => 'started', String), { timeout: 60_000 })
    .toBe('started');
  for (const block of blocks('2\\. Start', 'sql')) await asSuperuser(block);
}

async function asSuperuser(sql: string): Promise<void> {
  const [, password = ''] = /^POSTGRES_PASSWORD=(.*)$/m.exec(secrets) ?? [];
  const client = new pg.Client(`postgres://admin:admin-password@${net}.20:5432/postgres`);
  await client.connect();
  for (const statement of sql.split(';\n').filter((each) => each.trim()))
    await client.query(statement.replace('<POSTGRES_PASSWORD of /root/petrel-secrets>', password));
  await client.end();
}

async function copySecrets(): Promise<void> {
  secrets = await on('app1', 'cat /root/petrel-secrets');
  for (const other of ['data', 'balancer', ...apps.slice(1)])
    await on(other, `umask 077; cat > /root/petrel-secrets <<'END'\n${secrets}END`);
}

beforeAll(async () => {
  const systemctl = join(folder, 'systemctl');
  copyFileSync(join(here, 'systemctl.sh'), systemctl);
  machines = compose(join(here, 'machines.yaml'), { CHECKOUT: checkout, SYSTEMCTL: systemctl, NET: net });
  await machines.up();
}, 200_000);
afterAll(async () => {
  await Promise.all([world?.stop(), machines?.remove()]);
  await agent?.destroy();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

test('the commands of operating.md install a working system on seven machines', {
  retry: 0,
  timeout: 300_000,
}, async () => {
  for (const app of apps) await on(app, prepare.replace(/^cd .*npm ci.*\n/m, ''));
  for (const block of blocks('1\\. Create the secrets')) await on('app1', block);
  await copySecrets();
  for (const block of blocks('2\\. Start')) await on('data', block);
  await startPostgres();
  for (const app of apps) for (const block of blocks('3\\. Settings')) await on(app, block);
  for (const block of blocks('4\\. Create the tables')) await on('app1', block);
  await Promise.all(apps.map((app) => on(app, blocks('5\\. Start')[0] as string)));
  await on('balancer', 'ln -s /opt/petrel-1 /opt/petrel');
  for (const block of blocks('6\\. Start')) await on('balancer', block);
  for (const block of blocks('7\\. Create'))
    expect(await on('balancer', block)).toContain('"username":"carol"');
  for (const block of blocks('8\\. Check')) await on('app3', block);
});

const [restart = ''] = blocks('Restart without');

async function leaveAndComeBack(): Promise<void> {
  const [end = '', takeOut = '', add = ''] = blocks('Add or remove');
  await on('app5', end);
  await on('balancer', takeOut);
  await sleep(2_000);
  await on('app5', blocks('5\\. Start')[0] as string);
  await on('balancer', add);
}

async function backUpAndDrill(): Promise<void> {
  for (const block of blocks('Make a backup')) await on('app1', block);
  const [prepareData = '', drill = ''] = blocks('Drill a restore');
  await on('data', prepareData);
  for (const block of blocks('Drill a restore', 'sql')) await asSuperuser(block);
  expect(await on('app1', drill)).toContain('this is a drill');
}

async function upgrade(): Promise<void> {
  const [build = '', migrate = '', link = ''] = blocks('Upgrade');
  expect(build).toContain('npm ci');
  await on('app1', migrate);
  for (const app of apps) await on(app, link);
  for (const role of ['flush', 'deliver'])
    for (const app of apps) await on(app, `systemctl restart petrel@${role}`);
  for (const app of apps) await on(app, restart);
}

async function rotate(): Promise<void> {
  const [make = '', second = '', first = '', seal = '', drop = ''] = blocks('Rotate keys');
  await on('app1', make);
  await copySecrets();
  for (const list of [second, first]) for (const app of apps) await on(app, `${list}\n${restart}`);
  await on('app1', seal);
  for (const app of apps) await on(app, `${drop}\n${restart}`);
}

test('under load, the procedures in operating.md cause no failed call and no loss of data', {
  retry: 0,
  timeout: 900_000,
}, async () => {
  const ca = await on('balancer', 'cat /etc/haproxy/petrel.pem');
  const [, admin = ''] = /^ADMIN_TOKEN=(.*)$/m.exec(secrets) ?? [];
  agent = new Agent({ connect: { ca, servername: 'petrel.example.org' }, connections: 64 });
  const made = createCalls([{ url: `https://${addressOf('balancer')}` } as never], admin, agent, new Set());
  const noted = async (what: string, answer: Promise<Answer>) => {
    const got = await answer.catch((error: Error) => {
      failures.push(`${what}: ${error.message}`);
      throw error;
    });
    if (got.status !== 200) failures.push(`${what}: ${got.status} ${JSON.stringify(got.body)}`);
    return got;
  };
  const calls = {
    ...made,
    app: ((user, verb, path, body) =>
      noted(`${verb} ${path}`, made.app(user, verb, path, body))) as Service['app'],
    bot: ((bot, method, params) => noted(method, made.bot(bot, method, params))) as Service['bot'],
  };
  world = await createWorld(calls);
  world.poll(() => 0);
  const ended = new AbortController();
  // Each sender pauses one second between two calls. Without the pauses, the calls of the test would exceed the default
  // limit of 30 calls per second, which also applies to the calls that read the history.
  let acknowledged = 0;
  const loading = world.load({
    ...{ count: Number.POSITIVE_INFINITY, signal: ended.signal, front: () => 0, restMs: 1_000 },
    onAcknowledged: (total) => {
      acknowledged = total;
    },
  });
  try {
    await leaveAndComeBack();
    await backUpAndDrill();
    await upgrade();
    await rotate();
    await on('app1', 'petrel doctor');
    await sleep(2_000);
    await expect.poll(() => acknowledged, { timeout: 120_000 }).toBeGreaterThan(500);
  } finally {
    ended.abort();
    await loading;
  }
  const verdict = await world.settled();
  console.log(`The walk: ${verdict.acknowledged} acknowledged, ${failures.length} failed`);
  // Shows the logs of the nodes, because only these logs say why a call failed.
  if (failures.length > 0)
    for (const app of apps)
      console.log(app, await on(app, 'grep -h \'"level":[456]0\' /var/log/unit-*.log | tail -n 20 || true'));
  expect(failures).toEqual([]);
  expect(verdict).toMatchObject(nothingWrong);
});
