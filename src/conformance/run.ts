/**
 * Runs `petrel conformance`, which checks a running server from outside and reports how it differs from the interface.
 */
import { writeFileSync } from 'node:fs';
import { version } from '../config/version.js';
import { channelChecks } from './channels.js';
import {
  type Check,
  createSession,
  type Need,
  needs,
  type Places,
  type Sent,
  type Session,
} from './check.js';
import { type Client, createClient, Failed } from './client.js';
import { groupChecks } from './groups.js';
import { conformanceLimits as limits } from './limits.js';
import { mediaChecks } from './media.js';
import { messageChecks } from './messages.js';
import { parameterChecks } from './parameters.js';
import { listText, type Outcome, type Report, reasonOf, reportText } from './report.js';
import { requestChecks } from './requests.js';
import { settingChecks } from './settings.js';
import { updateChecks } from './updates.js';

/**
 * The checks in their order. Checks that change nothing come first. The last check in `groups.ts` comes at the end,
 * because it removes the second bot from the group.
 */
export const checks: readonly Check[] = [
  ...requestChecks,
  ...parameterChecks,
  ...settingChecks,
  ...messageChecks,
  ...mediaChecks,
  ...updateChecks,
  ...channelChecks,
  ...groupChecks,
];

export interface ConformanceOptions {
  readonly token: string;
  readonly chat?: number;
  readonly group?: number;
  readonly channel?: number;
  readonly secondToken?: string;
  readonly webhook?: string;
  /** Runs only checks whose subject or statement contains one of these texts. If undefined, all checks run. */
  readonly only?: readonly string[];
  readonly list?: true;
  readonly json?: string;
}

interface Prepared {
  readonly session: Session;
  readonly has: Readonly<Record<Need, boolean>>;
  readonly sent: Sent;
}

async function identify(client: Client, what: string): Promise<Session['me']> {
  const { status, body } = await client.call('getMe');
  if (status !== 200 || typeof body?.result?.id !== 'number' || typeof body.result.first_name !== 'string')
    throw new Failed(`getMe with ${what} answered ${status} ${JSON.stringify(body)}`);
  return { id: body.result.id, first_name: body.result.first_name };
}

/** Finds out which requirements of checks are met. Throws Failed if a token does not work. */
async function prepare(url: string, options: ConformanceOptions, client: Client): Promise<Prepared> {
  const { chat = 0, group = 0, channel = 0, webhook = '', secondToken } = options;
  const me = await identify(client, '--token');
  const { body } = await client.call('getWebhookInfo');
  const other = secondToken === undefined ? null : createClient(url, secondToken);
  const second = other
    ? { token: other.token, id: (await identify(other, '--second-token')).id }
    : { token: '', id: 0 };
  const places: Places = { chat, group, channel, webhook, second };
  const sent: Sent = new Map();
  return {
    session: createSession(client, me, places, sent),
    sent,
    has: {
      chat: chat !== 0,
      direct: chat > 0,
      group: group !== 0,
      channel: channel !== 0,
      webhook: webhook !== '',
      second: second.id !== 0,
      polling: body?.result?.url === '',
    },
  };
}

const tokensOf = ({ client, second }: Session): readonly string[] => [client.token, second.token];

async function runOne(check: Check, { session, has }: Prepared, endsAt: number): Promise<Outcome> {
  const { subject, proves } = check;
  const missing = check.needs.find((need) => !has[need]);
  if (missing) return { subject, proves, state: 'skipped', reason: needs[missing], ms: 0 };
  const began = performance.now();
  const ended = (rest: Pick<Outcome, 'state' | 'reason'>): Outcome => ({
    subject,
    proves,
    ...rest,
    ms: Math.round(performance.now() - began),
  });
  if (began > endsAt)
    return ended({
      state: 'failed',
      reason: `not run within ${limits.conformance_run_ms_max / 60_000} minutes`,
    });
  try {
    await check.run(session);
    return ended({ state: 'passed' });
  } catch (error) {
    const reason = reasonOf(error, limits.conformance_reason_length_max, tokensOf(session));
    return ended({ state: 'failed', reason });
  }
}

/**
 * Runs the checks that change nothing concurrently, and the others one at a time. Returns the outcomes in the order of
 * the checks.
 */
async function runAll(chosen: readonly Check[], prepared: Prepared): Promise<Outcome[]> {
  const endsAt = performance.now() + limits.conformance_run_ms_max;
  const outcomes = new Map<Check, Outcome>();
  const beside = chosen.filter((check) => check.beside);
  let next = 0;
  const lane = async () => {
    for (let i = next++; i < beside.length; i = next++) {
      const check = beside[i] as Check;
      outcomes.set(check, await runOne(check, prepared, endsAt));
    }
  };
  await Promise.all(Array.from({ length: limits.conformance_refused_at_once }, lane));
  for (const check of chosen) if (!check.beside) outcomes.set(check, await runOne(check, prepared, endsAt));
  return chosen.map((check) => outcomes.get(check) as Outcome);
}

const batch = 100;

/** Deletes the messages that the run sent. Returns a line for each chat in which a deletion failed. */
async function clean({ call }: Session, sent: Sent): Promise<string[]> {
  const left: string[] = [];
  for (const [chat_id, ids] of sent) {
    const all = [...ids];
    for (let i = 0; i < all.length; i += batch) {
      const message_ids = all.slice(i, i + batch);
      const { status, body } = await call('deleteMessages', { chat_id, message_ids });
      if (status !== 200)
        left.push(`messages in chat ${chat_id} could not be deleted: ${status} ${body?.description}`);
    }
  }
  return left;
}

const matches = ({ subject, proves }: Check, only: readonly string[] | undefined): boolean =>
  only === undefined || only.some((text) => `${subject}: ${proves}`.includes(text));

/** Checks a server. Throws Failed if the server cannot be reached or a token does not work. */
export async function checkServer(given: string, options: ConformanceOptions): Promise<Report> {
  const began = performance.now();
  const url = given.replace(/\/+$/, '');
  const client = createClient(url, options.token);
  const prepared = await prepare(url, options, client);
  const chosen = checks.filter((check) => matches(check, options.only));
  const outcomes = await runAll(chosen, prepared);
  const kept = await clean(prepared.session, prepared.sent).catch((error: Error) => [
    `messages could not be deleted: ${error.message}`,
  ]);
  const left = kept.map((line) =>
    reasonOf(new Failed(line), limits.conformance_reason_length_max, tokensOf(prepared.session)),
  );
  const count = (state: Outcome['state']) => outcomes.filter((each) => each.state === state).length;
  return {
    schema: 'petrel-conformance',
    version: 1,
    made_at: new Date().toISOString(),
    petrel: version,
    url,
    bot: prepared.session.me.id,
    requests: client.sent(),
    ms: Math.round(performance.now() - began),
    passed: count('passed'),
    failed: count('failed'),
    skipped: count('skipped'),
    left,
    checks: outcomes,
  };
}

/**
 * Checks a server, then prints the report and writes it to a file if asked to. Returns true if at least one check ran
 * and none failed.
 */
export async function runConformance(url: string, options: ConformanceOptions): Promise<boolean> {
  if (options.list) {
    process.stdout.write(listText(checks.filter((check) => matches(check, options.only))));
    return true;
  }
  const report = await checkServer(url, options);
  process.stdout.write(reportText(report));
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
  return report.failed === 0 && report.passed > 0;
}
