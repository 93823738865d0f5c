import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { memoryRoot } from '../../src/dev/files.js';
import { createMemoryFolder, removeLeftovers } from './memory_folder.js';
import { temporaryFolder } from './servers.js';

const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started) child.kill('SIGKILL');
});

test('a folder that is absent, full or not writable is not used', () => {
  const root = temporaryFolder();
  expect(memoryRoot(1, root)).toBe(root);
  expect(memoryRoot(1, join(root, 'absent'))).toBeUndefined();
  expect(memoryRoot(2 ** 60, root)).toBeUndefined();
  // Uses a path below a file, because root may write to every folder.
  writeFileSync(join(root, 'file'), '');
  expect(memoryRoot(1, join(root, 'file', 'below'))).toBeUndefined();
  expect(createMemoryFolder(root, 0)).toBeUndefined();
});

test.runIf(process.platform === 'linux')(
  'a run removes the folders of dead runs and ends their servers, but does not touch running runs',
  async () => {
    const root = temporaryFolder();
    const mine = createMemoryFolder(root, Number.POSITIVE_INFINITY) as string;
    expect(dirname(mine)).toBe(root);
    const like = (pid: number) => join(root, basename(mine).replace(`-${process.pid}-`, `-${pid}-`));
    const alive = spawn('sleep', ['60']);
    const dead = spawnSync('true').pid;
    const [running, leftover] = [like(alive.pid as number), like(dead)];
    for (const folder of [running, leftover, join(root, 'other')]) mkdirSync(folder);
    const server = spawn('sleep', ['60'], { cwd: leftover });
    started.push(alive, server);
    const ended = once(server, 'exit');
    await removeLeftovers(root);
    expect(await ended).toEqual([null, 'SIGKILL']);
    expect(existsSync(leftover)).toBe(false);
    for (const folder of [mine, running, join(root, 'other')]) expect(existsSync(folder)).toBe(true);
    expect(alive.exitCode).toBe(null);
  },
);
