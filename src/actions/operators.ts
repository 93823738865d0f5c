/**
 * Builds the views of bots and people for administrators. These views contain no tokens, no secrets and no paths of
 * URLs.
 */

import { ruleLimits } from '../rules/limits.js';
import { defaultUpdateMask, maskNames } from '../rules/update_kinds.js';
import type { AccountRow, OverseenBotRow, OverseenPersonRow } from '../store/accounts/oversight.js';
import { type Route, routeAt } from '../store/core/route_record.js';
import type { QueueInfo } from '../store/updates/queues.js';
import type { AttemptCounts, AttemptRow, OutcomeRow } from '../store/webhooks/attempts.js';
import type { Webhook } from '../store/webhooks/webhooks.js';
import { viewAttempt } from '../view/deliveries.js';
import type { OperatorBot } from '../wire/admin_results.js';

interface NamedPerson {
  readonly id: number;
  readonly username: string | null;
  readonly first_name: string;
  readonly last_name: string | null;
  readonly suspended_at: number | null;
}

const fullName = (first: string, last: string | null): string => (last === null ? first : `${first} ${last}`);

export const viewFoundAccount = ({ id, is_bot, username, name, last_name, suspended }: AccountRow) => ({
  type: is_bot ? ('bot' as const) : ('person' as const),
  id,
  ...(username === null ? {} : { username }),
  name: fullName(name, last_name),
  suspended,
});

const namesOf = ({ id, username, first_name, last_name }: NamedPerson) => ({
  id,
  ...(username === null ? {} : { username }),
  name: fullName(first_name, last_name),
});

export const viewOperatorPerson = (person: OverseenPersonRow) => ({
  ...namesOf(person),
  created_date: person.created_at,
  state: person.suspended_at === null ? ('active' as const) : ('suspended' as const),
  ...(person.suspended_at === null ? {} : { state_date: person.suspended_at }),
  bot_count: person.bots,
});

export function viewOperatorAttempt(row: AttemptRow): Readonly<Record<string, unknown>> {
  const { answer: _, ...shown } = viewAttempt(row);
  return shown;
}

export interface SeenQueue {
  readonly slot: number;
  /** The webhook of the bot or of the route. Null while the bot polls. */
  readonly webhook: Webhook | Route | null;
  readonly info: QueueInfo;
}

export interface SeenBot {
  readonly bot: OverseenBotRow;
  readonly owner: OverseenPersonRow | null;
  readonly counts: AttemptCounts;
  readonly letters: number;
  readonly outcomes: readonly OutcomeRow[];
  readonly failing: ReadonlyArray<{ readonly slot: number; readonly since: number }>;
  readonly queues: readonly SeenQueue[];
}

type Queue = OperatorBot['queues'][number];

/** Rounds to six decimals, so that one attempt per hour is not shown as zero. */
const rateOf = (count: number, seconds: number) => Math.round((count / seconds) * 1e6) / 1e6;

/** Returns those settings of a queue that `getWebhookInfo` also returns. Shows only the host of the webhook's URL. */
function settingsOf(webhook: Webhook | Route | null): Partial<Queue> {
  if (webhook === null) return {};
  return {
    webhook_host: new URL(webhook.url).host,
    max_connections: webhook.maxConnections,
    ...(webhook.address === null ? {} : { ip_address: webhook.address }),
    ...(webhook.retry ? { retry_policy: webhook.retry } : {}),
  };
}

const routeOf = (webhook: Webhook | Route | null): Route | null =>
  webhook !== null && 'slot' in webhook ? webhook : null;

function sharesOf(route: Route | null): Partial<Queue> {
  if (route === null) return {};
  return {
    route: route.name,
    ...(route.chats === null ? {} : { chat_count: route.chats.length }),
    ...(route.percent === ruleLimits.route_percent_max ? {} : { percent: route.percent }),
    ...(route.commands ? { command_count: route.commands.names.length } : {}),
  };
}

function troublesOf({ slot, webhook, info }: SeenQueue, failing: SeenBot['failing']): Partial<Queue> {
  const since = failing.find((each) => each.slot === slot)?.since;
  return {
    ...(since === undefined ? {} : { failing_date: since }),
    ...(webhook && info.error
      ? { last_error_date: info.error.date, last_error_message: info.error.message }
      : {}),
    ...(info.nextTryAt === null ? {} : { next_try_date: Math.ceil(info.nextTryAt / 1_000) }),
  };
}

/** Returns the rates and latencies of a queue. All successful deliveries count as one outcome. */
function figuresOf(outcomes: readonly OutcomeRow[]) {
  const success = outcomes.find(({ delivered }) => delivered);
  const sum = (delivered: boolean) =>
    outcomes.reduce((all, each) => (each.delivered === delivered ? all + each.count / each.seconds : all), 0);
  return {
    delivered_per_second: rateOf(sum(true), 1),
    failed_per_second: rateOf(sum(false), 1),
    ...(success ? { latency_p50_ms: success.p50, latency_p99_ms: success.p99 } : {}),
  };
}

function viewQueue(queue: SeenQueue, { outcomes, failing }: SeenBot): Queue {
  const { slot, webhook, info } = queue;
  const mask = routeOf(webhook)?.mask ?? info.mask;
  return {
    ...sharesOf(routeOf(webhook)),
    ...settingsOf(webhook),
    has_custom_certificate: webhook !== null && webhook.certificate !== null,
    ...(mask === defaultUpdateMask ? {} : { allowed_updates: maskNames(mask) }),
    pending_update_count: info.pending,
    dead_count: info.dead,
    ...troublesOf(queue, failing),
    ...figuresOf(outcomes.filter((each) => each.slot === slot)),
  };
}

function stateOf({ suspended_at, blocked_at }: OverseenBotRow): Pick<OperatorBot, 'state' | 'state_date'> {
  if (suspended_at !== null) return { state: 'suspended', state_date: suspended_at };
  return blocked_at === null ? { state: 'active' } : { state: 'blocked', state_date: blocked_at };
}

export function viewOperatorBot(
  seen: SeenBot,
): Omit<OperatorBot, 'rates' | 'pending_updates_max' | 'pending_bytes_max'> {
  const { bot, owner, counts, letters, outcomes, queues } = seen;
  const routes = queues.flatMap(({ webhook }) => routeOf(webhook) ?? []);
  return {
    id: bot.id,
    username: bot.username,
    name: bot.name,
    created_date: bot.created_at,
    ...stateOf(bot),
    ...(owner === null ? {} : { owner: { ...namesOf(owner), suspended: owner.suspended_at !== null } }),
    delivered_count: counts.delivered,
    failed_count: counts.failed,
    dead_count: counts.dead,
    dead_letter_count: letters,
    queues: queues.map((queue) => viewQueue(queue, seen)),
    outcomes: outcomes.map(({ slot, delivered, status, error, count, seconds, p50, p99, last }) => {
      const route = routeAt(routes, slot, last * 1_000)?.name;
      return {
        ...(route === undefined ? {} : { route }),
        ...{ delivered, status, error, count, per_second: rateOf(count, seconds) },
        ...{ latency_p50_ms: p50, latency_p99_ms: p99, last_date: last },
      };
    }),
  };
}
