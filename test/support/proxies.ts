/** The balancers of infra/proxy/ as a person runs them: their own configurations, on free ports, before given fronts. */
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { exitOf, freePort } from '../../src/local/processes.js';
import { makeCertificate } from './certificates.js';
import { temporaryFolder } from './servers.js';

const shipped = fileURLToPath(new URL('../../infra/proxy', import.meta.url));

export type ProxyKind = 'haproxy' | 'nginx';
export const proxyKinds: readonly ProxyKind[] = ['haproxy', 'nginx'];

/** Path of a program that the system's package manager installs; undefined where it is not there. */
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

export interface Balancer {
  /** `https://127.0.0.1:<port>` */
  readonly url: string;
  readonly port: number;
  /** The authority of its certificate. */
  readonly ca: string;
  /** All that it wrote. */
  log(): string;
  stop(): Promise<void>;
}

interface Prepared {
  readonly args: readonly string[];
  readonly env: Record<string, string>;
}

function prepareHaproxy(port: number, pem: string, fronts: readonly number[]): Prepared {
  const addresses = Object.fromEntries(
    fronts.map((front, i) => [`PETREL_FRONT${i + 1}`, `127.0.0.1:${front}`]),
  );
  const env = { PETREL_LISTEN: `127.0.0.1:${port}`, PETREL_CERT: pem, ...addresses };
  return { args: ['-db', '-f', join(shipped, 'haproxy.cfg')], env };
}

function prepareNginx(dir: string, port: number, pem: string, fronts: readonly number[]): Prepared {
  copyFileSync(join(shipped, 'nginx.conf'), join(dir, 'nginx.conf'));
  const servers = readFileSync(join(shipped, 'petrel-fronts.conf'), 'utf8');
  let at = 0;
  writeFileSync(
    join(dir, 'petrel-fronts.conf'),
    servers.replace(/127\.0\.0\.1:\d+/g, () => `127.0.0.1:${fronts[at++]}`),
  );
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

async function listens(port: number, child: ChildProcess, log: () => string): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    if (child.exitCode !== null) break;
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true));
      socket.on('error', () => resolve(false));
      socket.on('close', () => resolve(false));
      setTimeout(() => socket.destroy(), 500).unref();
    });
    if (open) return;
    await sleep(25);
  }
  throw new Error(`the balancer did not start:\n${log()}`);
}

/** Starts one before three fronts, by their ports. */
export async function startProxy(kind: ProxyKind, fronts: readonly number[]): Promise<Balancer> {
  const dir = temporaryFolder();
  const authority = makeCertificate({ commonName: 'authority', authority: true });
  const own = makeCertificate({
    ...{ commonName: 'proxy', issuer: authority, names: ['localhost'], addresses: ['127.0.0.1'] },
    forServers: true,
  });
  const pem = join(dir, 'petrel.pem');
  writeFileSync(pem, `${own.cert}\n${own.key}\n`, { mode: 0o600 });
  const port = await freePort();
  const prepared =
    kind === 'haproxy' ? prepareHaproxy(port, pem, fronts) : prepareNginx(dir, port, pem, fronts);
  let output = '';
  const child = spawn(findProgram(kind) as string, prepared.args, {
    env: { PATH: process.env.PATH ?? '', ...prepared.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += chunk;
    });
  const exited = exitOf(child);
  const log = () =>
    output +
    ['petrel.log', 'petrel-error.log', 'start.log']
      .map((name) => join(dir, name))
      .filter((path) => existsSync(path))
      .map((path) => readFileSync(path, 'utf8'))
      .join('');
  const stop = async () => {
    child.kill('SIGTERM');
    const late = setTimeout(() => child.kill('SIGKILL'), 3_000);
    await exited;
    clearTimeout(late);
    await rm(dir, { recursive: true, force: true });
  };
  try {
    await listens(port, child, log);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url: `https://127.0.0.1:${port}`, port, ca: authority.cert, log, stop };
}
