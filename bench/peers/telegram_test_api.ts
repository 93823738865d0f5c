/**
 * Optionally measures telegram-test-api, a well-known emulator of the Telegram server for tests, as a peer of the
 * service. One exact version is downloaded from the npm registry on demand. The project does not depend on it.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from '../../src/loadtest/client.js';
import { type Call, once } from '../../src/loadtest/series.js';
import type { NamedSide } from '../measure.js';
import type { Side } from '../scenarios/scenario.js';
import { text } from '../service/population.js';
import { runForOutput, serverCore } from '../service/processes.js';
import type { Service, Target } from '../service/service.js';
import type { PeerTask } from './telegram_test_api_server.js';

const name = 'telegram-test-api';
const version = '4.2.1';
const folder = fileURLToPath(
  new URL(`../../../node_modules/.cache/petrel-bench/${name}-${version}`, import.meta.url),
);

const installed = () => {
  const file = join(folder, 'node_modules', name, 'package.json');
  return existsSync(file) && JSON.parse(readFileSync(file, 'utf8')).version === version;
};

async function fetchPackage(signal: AbortSignal): Promise<void> {
  if (installed()) return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true }));
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--save-exact', '--prefix', folder];
  await runForOutput('npm', ['install', ...flags, `${name}@${version}`], signal, true);
  if (!installed()) throw new Error(`${name} ${version} could not be downloaded from the npm registry`);
}

const path = (method: string) => `/bot1:bench/${method}`;
const chat_id = 4_711;

async function ask(
  target: Target,
  { verb, path: to, body }: Call,
): Promise<{ ok: boolean; result: Record<string, unknown> }> {
  const response = await fetch(`${target.baseUrl}${to}`, {
    method: verb,
    ...(body === undefined ? {} : { body, headers: { 'content-type': 'application/json' } }),
  });
  expect(response.status === 200, `${name} answered ${response.status}`);
  return (await response.json()) as Awaited<ReturnType<typeof ask>>;
}

const calls: Readonly<
  Record<string, { readonly call: Call; holds(result: Record<string, unknown>): boolean }>
> = {
  getMe: {
    call: { verb: 'GET', path: path('getMe') },
    holds: ({ id, username }) => typeof id === 'number' && typeof username === 'string',
  },
  sendMessage: {
    call: { verb: 'POST', path: path('sendMessage'), body: JSON.stringify({ chat_id, text }) },
    holds: (result) => result.text === text && typeof result.message_id === 'number',
  },
};

export interface Peer {
  side(scenario: string): NamedSide[];
}

/** Downloads telegram-test-api and starts it on the core on which the service is measured. */
export async function startPeer(service: Service, progress: (line: string) => void): Promise<Peer> {
  progress(`downloading ${name} ${version}`);
  await fetchPackage(service.signal);
  const task: PeerTask = { folder };
  const server = await service.startProgram<{ port: number }>(
    'peers/telegram_test_api_server',
    task,
    serverCore,
  );
  const target = { baseUrl: `http://127.0.0.1:${server.first.port}`, pid: server.pid };
  return {
    side(scenario) {
      const known = calls[scenario];
      if (!known) return [];
      const side: Side = {
        target,
        foreign: true,
        series: { origin: target.baseUrl, calls: [known.call], rows: once },
        async verify() {
          const { ok, result } = await ask(target, known.call);
          expect(ok && known.holds(result), `${name} gave an unexpected answer to ${scenario}`);
        },
      };
      return [{ label: `${name} ${version}`, role: 'peer', side }];
    },
  };
}
