/**
 * Tests that tokens are found everywhere in a folder and in the history of a repository, and that nothing else is
 * reported.
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createFinder } from '../../src/leaks/finder.js';
import { type LeakFound, scan } from '../../src/leaks/scan.js';
import { makeToken } from '../../src/rules/token.js';
import { petrel } from '../support/command.js';
import { temporaryFolder } from '../support/servers.js';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let owner: TestUser;
const folder = temporaryFolder();
const root = join(folder, 'repository');
const made = (id: number, kind: 'bot' | 'user' = 'bot') => makeToken(kind, id, randomBytes(32));

const git = (...args: string[]) =>
  execFileSync('git', ['-C', root, ...args], {
    env: {
      PATH: process.env.PATH,
      ...{ GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null', HOME: folder },
      ...{ GIT_AUTHOR_NAME: 'A', GIT_AUTHOR_EMAIL: 'a@b.example' },
      ...{ GIT_COMMITTER_NAME: 'A', GIT_COMMITTER_EMAIL: 'a@b.example' },
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
    .toString()
    .trim();
const write = (name: string, content: string | Buffer) => writeFileSync(join(root, name), content);
const commit = (message: string, ...more: string[]) => {
  git('add', '--all');
  git('commit', '--quiet', '--allow-empty', '-m', message, ...more);
  return git('rev-parse', 'HEAD').slice(0, 12);
};

async function found(path: string): Promise<LeakFound[]> {
  const all: LeakFound[] = [];
  const onUnread = (place: string, error: unknown) => {
    throw new Error(`${place}: ${String(error)}`);
  };
  for await (const each of scan(path, { onUnread })) all.push(each);
  return all;
}

onSharedService(async (running) => {
  service = running;
  mkdirSync(root);
  git('init', '--quiet', '--initial-branch', 'main');
  owner = await service.newUser('owner');
});
afterAll(() => rmSync(folder, { recursive: true }));

test("a scan for leaked tokens searches every part of a repository's history", async () => {
  const token = Object.fromEntries(
    ['deleted', 'binary', 'wide', 'message', 'branch', 'amended', 'staged', 'untracked', 'person', 'tag'].map(
      (name, i) => [name, made(1_000 + i, name === 'person' ? 'user' : 'bot')],
    ),
  ) as Record<string, string>;
  const places: Array<[place: string, token: string]> = [];
  const expectAt = (place: string, name: string) => places.push([place, token[name] as string]);

  write('config.env', `TOKEN=${token.deleted}\n`);
  expectAt(`${commit('first')} config.env`, 'deleted');
  rmSync(join(root, 'config.env'));
  // The token begins in one chunk and ends in the next. The bytes around the token are not text.
  const noise = Buffer.alloc(700_000, 0xfe);
  Buffer.from(`9${token.binary}`).copy(noise, 256 * 1024 - 20);
  write('binary.dat', noise);
  write('wide.txt', Buffer.from(`\uFEFFtoken: ${token.wide}`, 'utf16le'));
  write(
    'near.txt',
    `${made(1).slice(0, -1)}! ${(token.binary as string).replace(/.$/, (c) => (c === 'a' ? 'b' : 'a'))}`,
  );
  const second = commit(`a message with ${token.message}`);
  expectAt(`${second} commit`, 'message');
  for (const [name, file] of [
    ['binary', 'binary.dat'],
    ['wide', 'wide.txt'],
  ] as const) {
    expectAt(file, name);
    expectAt(`${second} ${file}`, name);
  }
  git('checkout', '--quiet', '-b', 'aside');
  write('url.txt', `https://host/bot${token.branch?.replace(':', '%3A')}/getMe`);
  expectAt(`${commit('aside')} url.txt`, 'branch');
  git('checkout', '--quiet', 'main');
  write('amended.txt', token.amended as string);
  expectAt(`${commit('to be amended')} amended.txt`, 'amended');
  rmSync(join(root, 'amended.txt'));
  commit('amended', '--amend');
  git('tag', '-a', 'v1', '-m', `tag of ${token.tag}`);
  expectAt(`${git('rev-parse', 'v1').slice(0, 12)} v1`, 'tag');
  write('staged.txt', token.staged as string);
  git('add', 'staged.txt');
  const staged = git('rev-parse', ':staged.txt').slice(0, 12);
  expectAt(`${staged} staged.txt`, 'staged');
  expectAt('staged.txt', 'staged');
  write('untracked.txt', `x${token.untracked}`);
  expectAt('untracked.txt', 'untracked');
  symlinkSync('/', join(root, 'everything'));
  mkdirSync(join(root, 'below'));
  write('below/person', `bearer ${token.person}`);
  expectAt('below/person', 'person');

  const all = await found(root);
  // Leaves out the files of .git, because the scan finds tokens there too, for example in git's logs.
  const own = all.filter(({ place }) => !place.startsWith('.git'));
  expect(own.map(({ place, token: at }) => [place, at]).sort()).toEqual(places.sort());
  expect(all.find(({ token: at }) => at === token.person)).toMatchObject({ kind: 'user', id: 1_008 });
  // A folder inside a repository has no history of its own.
  expect((await found(join(root, 'below'))).map(({ place }) => place)).toEqual(['person']);
});

test('a scan for leaked tokens finds the same tokens at every chunk size', () => {
  const token = made(123_456);
  const text = Buffer.from(`1234567890${token}rest, ${token}`);
  for (const size of [1, 2, 7, 48, 60, 1_000]) {
    const finder = createFinder();
    const seen: string[] = [];
    for (let at = 0; at < text.length; at += size)
      seen.push(...finder.take(text.subarray(at, at + size)).map((each) => each.token));
    expect([size, seen]).toEqual([size, [token]]);
  }
});

test('a scan for leaked tokens blocks the tokens it finds, except in a dry run', async () => {
  const bot: TestBot = await service.newBot(owner, 'careless');
  const dir = join(folder, 'plain');
  mkdirSync(dir);
  const strange = made(77);
  writeFileSync(join(dir, `a ${bot.token}.txt`), `${bot.token} and ${strange}`);
  const status = async () => (await service.bot(bot, 'getMe')).status;
  const [look, bare] = await Promise.all([
    petrel(service.env, 'tokens', 'scan', '--dry-run', dir),
    petrel({ PATH: service.env.PATH ?? '' }, 'tokens', 'scan', dir),
  ]);
  const masked = `a ${bot.id}:….txt  bot ${bot.id}  ${bot.id}:A…  `;
  for (const { code, out } of [look, bare]) {
    expect([code, out]).toEqual([2, expect.stringContaining(`${masked}not blocked`)]);
    expect(out).toContain('2 found');
  }
  expect(await status()).toBe(200);
  const { code, out, log } = await petrel(service.env, 'tokens', 'scan', dir);
  expect([code, out]).toEqual([2, expect.stringContaining(`${masked}blocked`)]);
  expect(out).toContain('77:A…  not known here');
  expect(out + log + look.out + bare.out).not.toContain(bot.token.slice(-34));
  expect(await status()).toBe(401);
  await resultOf(service.app(owner, 'POST', `/api/me/bots/${bot.id}/regenerate_token`));
  rmSync(join(dir, `a ${bot.token}.txt`));
  const clean = await petrel({ PATH: service.env.PATH ?? '' }, 'tokens', 'scan', dir);
  expect([clean.code, clean.out]).toEqual([0, '0 found\n']);
  const nowhere = await petrel({ PATH: service.env.PATH ?? '' }, 'tokens', 'scan', join(dir, 'none'));
  expect(nowhere.code).toBe(1);
});

test("a scan for leaked tokens also finds an administrator's token, and revokes it immediately", async () => {
  const added = await petrel(service.env, 'admin', 'tokens', 'add', 'ada');
  const token = added.out.trim();
  const at = join(folder, 'admin');
  mkdirSync(at);
  writeFileSync(join(at, 'notes'), `the token is ${token}.`);
  const call = () =>
    fetch(`${service.fronts[0].url}/api/admin/overview`, { headers: { authorization: `Bearer ${token}` } });
  expect((await call()).status).toBe(200);
  const dry = await petrel(service.env, 'tokens', 'scan', '--dry-run', at);
  expect(dry.out).toMatch(/^notes {2}administrator \d+ {2}.*not blocked/);
  expect((await call()).status).toBe(200);
  const ran = await petrel(service.env, 'tokens', 'scan', at);
  expect(ran).toMatchObject({ code: 2 });
  expect(ran.out).toMatch(/^notes {2}administrator \d+ {2}\d+:O… {2}blocked$/m);
  expect(ran.out).not.toContain(token);
  expect((await call()).status).toBe(401);
});
