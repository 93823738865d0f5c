/** Lists and replays deliveries (tasks `webhooks …`). Of a webhook URL, only the host is shown. */

import { asDatabase } from '../postgres/sql.js';
import { listWebhooks } from '../postgres/webhooks/webhooks.js';
import { type Backends, StartError } from '../processes/backends.js';
import { ruleLimits as limits } from '../rules/limits.js';
import { allPages } from '../server/pages.js';
import type { Bot } from '../store/core/control.js';
import type { QueueInfo } from '../store/updates/queues.js';
import { allDead, type ReplayAsk } from '../store/webhooks/replays.js';

const say = (line: string) => process.stdout.write(`${line}\n`);
const shownTime = (seconds: number) => new Date(seconds * 1_000).toISOString();
const attemptsShown = 20;
const shownError = (error: QueueInfo['error']) =>
  error === null ? '' : `  ${shownTime(error.date)} ${error.message}`;

/** Finds a bot by id or username. Throws a StartError if there is none. */
export async function findBot({ store }: Backends, name: string): Promise<Bot> {
  const bot = /^\d{1,13}$/.test(name)
    ? await store.bots.find(Number(name))
    : await store.bots.findByUsername(name.replace(/^@/, ''));
  if (bot === null) throw new StartError(`there is no bot ${name}`);
  return bot;
}

export async function listAll({ pool, store }: Backends): Promise<void> {
  const db = asDatabase(pool);
  const read = (after: number, limit: number) => listWebhooks(db, after, limit);
  for await (const page of allPages(read, ({ id }) => id))
    for (const { id, username } of page) {
      const [webhook, routes, info, dead] = await Promise.all([
        store.webhooks.find(id),
        store.webhooks.routes(id),
        store.queues.info(id),
        store.replays.countDead(id),
      ]);
      // Skips a bot that no longer has a webhook or routes.
      if (webhook === null && routes.length === 0) continue;
      const host = webhook ? new URL(webhook.url).host : '-';
      say(`${id}  @${username}  ${host}  ${info.pending} pending  ${dead} dead${shownError(info.error)}`);
    }
}

export async function show(backends: Backends, name: string): Promise<void> {
  const { store } = backends;
  const { id } = await findBot(backends, name);
  const everything = { ofOwner: false, updateId: null, delivered: null, status: null };
  const [webhook, routes, info, dead, counts, items] = await Promise.all([
    store.webhooks.find(id),
    store.webhooks.routeStates(id),
    store.queues.info(id),
    store.replays.countDead(id),
    store.attempts.counts(id),
    store.attempts.list(id, everything, limits.id_max, attemptsShown),
  ]);
  say(`bot          ${id}`);
  if (webhook === null) say('webhook      none: the bot polls');
  else {
    say(`webhook      ${new URL(webhook.url).origin}, set as ${webhook.address ?? 'no address'}`);
    say(`connections  at most ${webhook.maxConnections}`);
    say(`trust        ${webhook.certificate === null ? 'public authorities' : 'its own certificate'}`);
    say(`secret token ${webhook.secretToken === null ? 'none' : 'set'}`);
  }
  say(`waiting      ${info.pending}`);
  if (info.error) say(`last error   ${shownTime(info.error.date)} ${info.error.message}`);
  for (const { name: route, url, info: own } of routes)
    say(`route        ${route}  ${new URL(url).origin}  ${own.pending} pending${shownError(own.error)}`);
  say(`attempts     ${counts.delivered} delivered, ${counts.failed} failed, ${counts.dead} given up`);
  say(`dead letters ${dead}`);
  for (const { at, update_id, route, status, error, latency_ms, tries, next_try_at } of items) {
    const next = next_try_at === null ? '' : `, next ${shownTime(next_try_at)}`;
    const by = route === undefined ? '' : `, route ${route}`;
    say(
      `${shownTime(at)}  ${update_id}  try ${tries}  ${error ?? `delivered with ${status}`}  ${latency_ms} ms${by}${next}`,
    );
  }
}

export interface ReplayOptions {
  readonly from?: string;
  readonly to?: string;
  readonly deadLetters?: boolean;
}

function askOf({ from, to, deadLetters = false }: ReplayOptions): ReplayAsk {
  if (from === undefined && to === undefined && deadLetters) return allDead;
  if (from === undefined || to === undefined)
    throw new StartError('choose the updates: --from and --to, or --dead-letters');
  if (![from, to].every((text) => /^\d{1,13}$/.test(text)) || Number(to) < Number(from))
    throw new StartError('--from and --to must be update ids, and --to not below --from');
  return { from: Number(from), to: Number(to), delivered: !deadLetters, ofOwner: false };
}

export async function replay(backends: Backends, name: string, options: ReplayOptions): Promise<void> {
  const ask = askOf(options);
  const { id } = await findBot(backends, name);
  const { queued } = await backends.store.replays.replay(id, ask, { type: 'operator' });
  say(`${queued} queued`);
}

export async function discard(backends: Backends, name: string): Promise<void> {
  const { id } = await findBot(backends, name);
  say(`${await backends.store.replays.discard(id)} discarded`);
}
