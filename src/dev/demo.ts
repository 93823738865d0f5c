/** Creates two users and a bot through the public HTTP interface, and keeps their tokens. Later runs use them again. */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { readJsonIfThere, writeFileAtomic } from './files.js';
import { Refusal, reasonOf } from './refusal.js';

export interface DemoUser {
  readonly id: number;
  readonly username: string;
  readonly external_id: string;
  readonly token: string;
}

export interface DemoBot {
  readonly id: number;
  readonly username: string;
  readonly token: string;
}

export interface Demo {
  readonly bot: DemoBot;
  readonly users: readonly [DemoUser, DemoUser];
}

export interface DemoOptions {
  readonly baseUrl: string;
  readonly adminToken: string;
  /** The path of the file (mode 0600) that records the created users and bot. */
  readonly path: string;
  /** Identifies the database. Demo data from another database are not reused. */
  readonly database: string;
}

interface Kept {
  database: string;
  users: Record<string, DemoUser>;
  bot?: DemoBot;
}

interface Answer {
  readonly status: number;
  readonly result: unknown;
  readonly description: string;
}

const people = [
  { username: 'alice', first_name: 'Alice', language_code: 'en' },
  { username: 'bob', first_name: 'Bob', language_code: 'en' },
] as const;
const botName = 'petrel_demo_bot';
const request_ms_max = 10_000;
const tries_max = 5;
const name_tries_max = 20;

async function once(url: string, method: string, token?: string, body?: unknown): Promise<Answer> {
  const response = await fetch(url, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(request_ms_max),
  });
  const text = await response.text();
  let envelope: { result?: unknown; description?: string } = {};
  try {
    envelope = JSON.parse(text);
  } catch {
    envelope = { description: text.slice(0, 200) };
  }
  return { status: response.status, result: envelope.result, description: envelope.description ?? '' };
}

async function call(url: string, method: string, token?: string, body?: unknown): Promise<Answer> {
  for (let attempt = 1; ; attempt++) {
    const answer = await once(url, method, token, body).catch((error: Error) => {
      const cause = error.cause === undefined ? error.message : reasonOf(error.cause);
      return { status: 503, result: undefined, description: cause };
    });
    const later = answer.status === 503 || answer.status === 429;
    if (!later || attempt === tries_max) return answer;
    await sleep(200 * attempt);
  }
}

function unexpected(what: string, { status, description }: Answer): Refusal {
  return new Refusal(`demo data: ${what} failed with ${status} ${description}`);
}

const isTaken = ({ status, description }: Answer) => status === 400 && /taken/.test(description);

/**
 * Returns the username to try: first `name`, then `name2`, `name3` and so on. Another installation on the same database
 * may have taken a name.
 */
function candidate(name: string, attempt: number): string {
  return attempt === 1 ? name : `${name}${attempt}`;
}

async function makeUser(options: DemoOptions, person: (typeof people)[number]): Promise<DemoUser> {
  for (let attempt = 1; ; attempt++) {
    const username = candidate(person.username, attempt);
    const url = `${options.baseUrl}/api/admin/users`;
    const answer = await call(url, 'POST', options.adminToken, { ...person, username });
    if (isTaken(answer) && attempt < name_tries_max) continue;
    if (answer.status !== 200) throw unexpected(`creating the user ${username}`, answer);
    const { user, token } = answer.result as { user: Omit<DemoUser, 'token'>; token: string };
    return { id: user.id, username: user.username, external_id: user.external_id, token };
  }
}

async function isWhoTheySay({ baseUrl }: DemoOptions, user: DemoUser): Promise<number> {
  const me = await call(`${baseUrl}/api/me`, 'GET', user.token);
  if (me.status !== 200) return me.status;
  return (me.result as { id?: unknown }).id === user.id ? 200 : 404;
}

/**
 * Returns the recorded user, with a new token if the recorded one no longer works. Undefined if the user no longer
 * exists.
 */
async function keptUser(options: DemoOptions, user: DemoUser | undefined): Promise<DemoUser | undefined> {
  if (!user) return undefined;
  const status = await isWhoTheySay(options, user);
  if (status === 200) return user;
  if (status !== 401) return undefined;
  const url = `${options.baseUrl}/api/admin/users/${user.id}/tokens`;
  const issued = await call(url, 'POST', options.adminToken, {});
  if (issued.status !== 200) return undefined;
  const renewed = { ...user, token: (issued.result as { token: string }).token };
  return (await isWhoTheySay(options, renewed)) === 200 ? renewed : undefined;
}

async function tokenOf(options: DemoOptions, owner: DemoUser, id: number): Promise<string | undefined> {
  const shown = await call(`${options.baseUrl}/api/me/bots/${id}/token`, 'GET', owner.token);
  return shown.status === 200 ? (shown.result as { token: string }).token : undefined;
}

async function keptBot(options: DemoOptions, owner: DemoUser, bot?: DemoBot): Promise<DemoBot | undefined> {
  if (!bot) return undefined;
  const me = await call(`${options.baseUrl}/bot${bot.token}/getMe`, 'GET');
  if (me.status === 200 && (me.result as { id?: unknown }).id === bot.id) return bot;
  const token = await tokenOf(options, owner, bot.id);
  return token === undefined ? undefined : { ...bot, token };
}

async function ownedBot(
  options: DemoOptions,
  owner: DemoUser,
  username: string,
): Promise<DemoBot | undefined> {
  const listed = await call(`${options.baseUrl}/api/me/bots`, 'GET', owner.token);
  const items = (listed.result as { items?: unknown } | undefined)?.items ?? listed.result;
  if (!Array.isArray(items)) return undefined;
  const found = (items as { id: number; username: string }[]).find((bot) => bot.username === username);
  const token = found && (await tokenOf(options, owner, found.id));
  return found && token !== undefined ? { id: found.id, username, token } : undefined;
}

async function makeBot(options: DemoOptions, owner: DemoUser): Promise<DemoBot> {
  for (let attempt = 1; ; attempt++) {
    const username = attempt === 1 ? botName : botName.replace('_bot', `${attempt}_bot`);
    const body = { username, name: 'Demo' };
    const answer = await call(`${options.baseUrl}/api/me/bots`, 'POST', owner.token, body);
    if (isTaken(answer) && attempt < name_tries_max) {
      const owned = await ownedBot(options, owner, username);
      if (owned) return owned;
      continue;
    }
    if (answer.status !== 200) throw unexpected(`creating the bot ${username}`, answer);
    const { id, token } = answer.result as DemoBot;
    return { id, username, token };
  }
}

/**
 * Returns the demo users and their bot with working tokens. Creates only what is missing. Throws a Refusal that quotes
 * the server's answer if a call fails.
 */
export async function ensureDemo(options: DemoOptions): Promise<Demo> {
  const database = createHash('sha256').update(options.database).digest('hex').slice(0, 16);
  const read = readJsonIfThere(options.path) as Kept | undefined;
  const kept: Kept = read?.database === database ? read : { database, users: {} };
  const keep = () => writeFileAtomic(options.path, `${JSON.stringify(kept, null, 2)}\n`);
  const users: DemoUser[] = [];
  for (const person of people) {
    const user = (await keptUser(options, kept.users[person.username])) ?? (await makeUser(options, person));
    kept.users[person.username] = user;
    keep();
    users.push(user);
  }
  const [alice, bob] = users as [DemoUser, DemoUser];
  kept.bot = (await keptBot(options, alice, kept.bot)) ?? (await makeBot(options, alice));
  keep();
  return { bot: kept.bot, users: [alice, bob] };
}
