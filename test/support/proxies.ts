/**
 * Runs the balancers of infra/proxy/ with certificates of a private authority. Also returns everything that they
 * logged.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type BalancerKind,
  balancerKinds,
  findProgram,
  startBalancer,
} from '../../bench/service/balancer.js';
import { makeCertificate } from './certificates.js';
import { temporaryFolder } from './servers.js';

const shipped = fileURLToPath(new URL('../../infra/proxy', import.meta.url));

export type ProxyKind = BalancerKind;
export const proxyKinds: readonly ProxyKind[] = balancerKinds;
export { findProgram };

export interface Balancer {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly ca: string;
  log(): string;
  stop(): Promise<void>;
}

/**
 * Copies the shipped configurations. In the copies, operators connect from the addresses in `range`, and not from
 * loopback addresses.
 */
function withOperators(dir: string, range: string): string {
  const own = join(dir, 'shipped');
  mkdirSync(own);
  for (const name of readdirSync(shipped)) {
    const text = readFileSync(join(shipped, name), 'utf8');
    writeFileSync(join(own, name), text.replace('127.0.0.0/8', range));
  }
  return own;
}

export async function startProxy(
  kind: ProxyKind,
  fronts: readonly number[],
  { operators }: { operators?: string } = {},
): Promise<Balancer> {
  const dir = temporaryFolder();
  const from = operators === undefined ? shipped : withOperators(dir, operators);
  const authority = makeCertificate({ commonName: 'authority', authority: true });
  const own = makeCertificate({
    ...{ commonName: 'proxy', issuer: authority, names: ['localhost'], addresses: ['127.0.0.1'] },
    forServers: true,
  });
  const pem = join(dir, 'petrel.pem');
  writeFileSync(pem, `${own.cert}\n${own.key}\n`, { mode: 0o600 });
  const files = join(dir, 'files');
  mkdirSync(files);
  let output = '';
  const log = () =>
    output +
    ['petrel.log', 'petrel-error.log', 'start.log']
      .map((name) => join(files, name))
      .filter((path) => existsSync(path))
      .map((path) => readFileSync(path, 'utf8'))
      .join('');
  const remove = () => rm(dir, { recursive: true, force: true });
  try {
    const hear = (chunk: string) => {
      output += chunk;
    };
    const running = await startBalancer(kind, { shipped: from, dir: files, pem, fronts, hear });
    const stop = async () => {
      await running.stop();
      await remove();
    };
    return { url: running.url, port: running.port, pid: running.pid, ca: authority.cert, log, stop };
  } catch (error) {
    const logged = log();
    await remove();
    throw new Error(`${(error as Error).message}:\n${logged}`);
  }
}
