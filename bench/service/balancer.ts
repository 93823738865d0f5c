/** Runs HAProxy or nginx with the configurations of infra/proxy/, on a free port, in front of given fronts. */
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { exitOf, freePort } from '../../src/dev/processes.js';

export type BalancerKind = 'haproxy' | 'nginx';
export const balancerKinds: readonly BalancerKind[] = ['haproxy', 'nginx'];

/** Returns the path of a program, or undefined if it is not installed. */
export function findProgram(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/local/sbin', '/usr/bin'];
  return folders
    .filter(Boolean)
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

export interface BalancerOptions {
  readonly shipped: string;
  /**
   * An empty folder that the caller later removes. nginx writes `petrel.log`, `petrel-error.log` and `start.log` into
   * it.
   */
  readonly dir: string;
  readonly pem: string;
  /** The ports of the fronts: one to five for HAProxy, one to three for nginx. */
  readonly fronts: readonly number[];
  readonly hear?: (chunk: string) => void;
}

export interface RunningBalancer {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  stop(): Promise<void>;
}

interface Prepared {
  readonly args: readonly string[];
  readonly env: Record<string, string>;
}

function prepareHaproxy(port: number, { shipped, pem, fronts }: BalancerOptions): Prepared {
  const addresses = Object.fromEntries(
    fronts.map((front, i) => [`PETREL_FRONT${i + 1}`, `127.0.0.1:${front}`]),
  );
  const env = { PETREL_LISTEN: `127.0.0.1:${port}`, PETREL_CERT: pem, ...addresses };
  return { args: ['-db', '-f', join(shipped, 'haproxy.cfg')], env };
}

function prepareNginx(port: number, { shipped, dir, pem, fronts }: BalancerOptions): Prepared {
  copyFileSync(join(shipped, 'nginx.conf'), join(dir, 'nginx.conf'));
  const servers = readFileSync(join(shipped, 'petrel-fronts.conf'), 'utf8');
  let at = 0;
  const own = servers.replace(/^server 127\.0\.0\.1:\d+(.*\n)/gm, (_, rest) => {
    const front = fronts[at++];
    return front === undefined ? '' : `server 127.0.0.1:${front}${rest}`;
  });
  writeFileSync(join(dir, 'petrel-fronts.conf'), own);
  const listen = readFileSync(join(shipped, 'petrel-listen.conf'), 'utf8')
    .replace('443', `127.0.0.1:${port}`)
    .replaceAll('/etc/ssl/petrel.pem', pem)
    .replaceAll('/var/log/nginx', dir);
  const temporary = ['client_body', 'proxy'].map((name) => `${name}_temp_path ${join(dir, name)};\n`);
  writeFileSync(join(dir, 'petrel-listen.conf'), listen + temporary.join(''));
  const user = process.getuid?.() === 0 ? 'user root; ' : '';
  const main = `${user}daemon off; pid ${join(dir, 'nginx.pid')};`;
  return {
    args: ['-p', dir, '-c', join(dir, 'nginx.conf'), '-e', join(dir, 'start.log'), '-g', main],
    env: {},
  };
}

async function listens(port: number, child: ChildProcess): Promise<boolean> {
  for (let tries = 0; tries < 400; tries++) {
    if (child.exitCode !== null) return false;
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true));
      socket.on('error', () => resolve(false));
      socket.on('close', () => resolve(false));
      setTimeout(() => socket.destroy(), 500).unref();
    });
    if (open) return true;
    await sleep(25);
  }
  return false;
}

export async function startBalancer(kind: BalancerKind, options: BalancerOptions): Promise<RunningBalancer> {
  const program = findProgram(kind);
  if (program === undefined) throw new Error(`${kind} is not installed`);
  const { hear } = options;
  const port = await freePort();
  const prepared = (kind === 'haproxy' ? prepareHaproxy : prepareNginx)(port, options);
  const child = spawn(program, prepared.args, {
    env: { PATH: process.env.PATH ?? '', ...prepared.env },
    stdio: hear ? ['ignore', 'pipe', 'pipe'] : 'ignore',
  });
  if (hear)
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => hear(`${chunk}`));
  const exited = exitOf(child);
  const stop = async () => {
    child.kill('SIGTERM');
    const late = setTimeout(() => child.kill('SIGKILL'), 3_000);
    await exited;
    clearTimeout(late);
  };
  if (await listens(port, child))
    return { url: `https://127.0.0.1:${port}`, port, pid: child.pid as number, stop };
  await stop();
  throw new Error(`${kind} did not start`);
}
