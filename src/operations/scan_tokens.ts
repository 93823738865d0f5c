/**
 * Finds tokens in a folder or git repository, and blocks the tokens that belong to this installation (task `tokens
 * scan`).
 */
import { type LeakFound, scan } from '../leaks/scan.js';
import { StartError } from '../processes/installation.js';
import { maskTokens } from '../rules/token.js';
import type { Store } from '../store/store.js';

const say = (line: string) => process.stdout.write(`${line}\n`);
/**
 * Returns the text to print for a place. Masks tokens and replaces control characters, because a file name may contain
 * anything.
 */
const shown = (place: string) => maskTokens(place).replace(/\p{Cc}/gu, '\uFFFD');
const batchMax = 500;
const rememberedMax = 100_000;

const whoseOf = { bot: 'bot', user: 'person', admin: 'administrator' } as const;

type Stores = Pick<Store, 'leaks' | 'admins'>;

/** Revokes a token. Returns false if the token is not valid in this installation. */
async function revoked({ admins }: Stores, token: string): Promise<boolean> {
  const found = await admins.find(token);
  return found !== null && admins.revoke(found.name);
}

type Verdict = 'blocked' | 'not known here' | 'not blocked';

/**
 * Prints every place where a token was found, with the token masked. Returns the number of places. Blocks nothing if
 * `store` is null. Throws a StartError.
 */
export async function scanTokens(path: string, store: Stores | null): Promise<number> {
  const verdicts = new Map<string, Verdict>();
  let waiting: LeakFound[] = [];
  let count = 0;
  let unread = 0;

  async function settle(): Promise<void> {
    const fresh = [...new Map(waiting.map((each) => [each.token, each])).values()].filter(
      ({ token }) => !verdicts.has(token),
    );
    const known: boolean[] = store === null ? [] : [...(await store.leaks.report(fresh, 'scan'))];
    for (const [i, { token, kind }] of fresh.entries())
      if (store !== null && kind === 'admin') known[i] = await revoked(store, token);
    fresh.forEach(({ token }, i) => {
      verdicts.set(token, store === null ? 'not blocked' : known[i] ? 'blocked' : 'not known here');
    });
    for (const { token, kind, id, place } of waiting) {
      const whose = whoseOf[kind];
      say(`${shown(place)}  ${whose} ${id}  ${id}:${token[token.indexOf(':') + 1]}…  ${verdicts.get(token)}`);
    }
    waiting = [];
    if (verdicts.size > rememberedMax) verdicts.clear();
  }

  try {
    const onUnread = (place: string, error: unknown) => {
      unread++;
      process.stderr.write(`${place} could not be read: ${(error as Error).message}\n`);
    };
    for await (const found of scan(path, { onUnread })) {
      count++;
      waiting.push(found);
      if (waiting.length >= batchMax) await settle();
    }
  } catch (error) {
    await settle();
    throw new StartError((error as Error).message);
  }
  await settle();
  const skipped = unread === 0 ? '' : `; ${unread} could not be read`;
  say(`${count} found${skipped}`);
  return count;
}
