/**
 * Rotates keys while the installation is running. Re-encrypts all data with the first key, and hashes bots' tokens
 * again with the first pepper. Changes only values that use another key or pepper, so an interrupted rotation can be
 * repeated. Skips a value that was changed after the rotation loaded it, because that change already used the first
 * key.
 */
import * as rows from '../../postgres/accounts/rotation.js';
import type { RedisConnection, RedisServers } from '../../redis/connection.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies, ControlSubject } from '../core/control.js';
import { type BoxKind, type BoxOwner, keyIdOf, type Secrets } from '../core/secrets.js';
import { sealedFor } from '../webhooks/webhooks.js';

export interface Rotated {
  readonly sealed: Readonly<Record<BoxKind, number>>;
  /** How many encrypted values, and how many copies of encrypted values, still use a key other than the first key. */
  readonly left: number;
  /** How many tokens of people may still be hashed with a former pepper. */
  readonly onFormerPepper: number;
}

const batchMax = 200;
const scanKeys = 1_000;
/** The maximum number of passes. More than two are needed only while calls that use the old keys are still running. */
const passesMax = 5;

async function inPages<T>(
  list: (after: number) => Promise<readonly T[]>,
  idOf: (row: T) => number,
  seal: (page: readonly T[]) => Promise<number>,
): Promise<number> {
  let sealed = 0;
  for (let after = 0; ; ) {
    const page = await list(after);
    sealed += await seal(page);
    const last = page.at(-1);
    if (last === undefined || page.length < batchMax) return sealed;
    after = idOf(last);
  }
}

function resealed(secrets: Secrets, was: rows.WebhookBoxes): rows.WebhookBoxes {
  const seal = (box: Buffer, what: Parameters<typeof sealedFor>[1]) =>
    secrets.reseal(box, sealedFor(was.bot_id, what));
  return {
    bot_id: was.bot_id,
    url_box: was.url_box && seal(was.url_box, 'url'),
    secret_box: was.secret_box && seal(was.secret_box, 'secret'),
    signing_box: seal(was.signing_box, 'signing'),
    former_signing_box: was.former_signing_box && seal(was.former_signing_box, 'signing'),
    routes_box: was.routes_box && seal(was.routes_box, 'routes'),
  };
}

export class Rotation {
  readonly #context: StoreContext;
  readonly #control: ControlCopies;
  readonly #connection: Pick<RedisServers, 'nodes'>;
  readonly #current: string;

  /** The functions that re-encrypt all values of each kind. If a kind lacks its function, the code does not compile. */
  readonly #passes: Readonly<Record<BoxKind, () => Promise<number>>> = {
    bot: () => this.#sealBots(),
    webhook: () => this.#sealWebhooks(),
    idempotency: () => this.#sealAnswers(),
    installation: () => this.#sealInstallation(),
  };

  constructor(context: StoreContext, control: ControlCopies, connection: Pick<RedisServers, 'nodes'>) {
    this.#context = context;
    this.#control = control;
    this.#connection = connection;
    this.#current = context.secrets.checks.keys[0]?.id as string;
  }

  /** Runs a rotation. Every running node must already use the first key and pepper for new data. */
  async run(): Promise<Rotated> {
    const sealed = { bot: 0, webhook: 0, idempotency: 0, installation: 0 };
    let left = 0;
    let found = 0;
    for (let pass = 0; pass < passesMax; pass++) {
      found = 0;
      for (const kind of Object.keys(this.#passes) as BoxKind[]) {
        const count = await this.#passes[kind]();
        sealed[kind] += count;
        found += count;
      }
      const former = await rows.countFormer(this.#context.db, this.#current);
      left = former.boxes + former.copies;
      // Waits until no copy is stale. Stale copies are refreshed by the processes that changed the records, or by the
      // sweep.
      if (found === 0 && left === 0) break;
    }
    const onFormerPepper = left === 0 && found === 0 ? await this.#retire() : 0;
    return { sealed, left: left + found, onFormerPepper };
  }

  /** Retires the former keys. Returns how many tokens may still be hashed with a former pepper. */
  async #retire(): Promise<number> {
    const { db, secrets } = this.#context;
    const onFormerPepper = await rows.adoptPepper(db, secrets.checks.peppers[0] ?? '');
    const noted = await rows.readInstallation(db);
    const ids = [...noted.keys()].filter((name) => name.startsWith('TOKEN_KEYS '));
    await rows.retireKeys(
      db,
      ids.map((name) => name.slice('TOKEN_KEYS '.length)).filter((id) => id !== this.#current),
    );
    return onFormerPepper;
  }

  async #refresh(subject: ControlSubject, stale: readonly rows.StaleCopy[]): Promise<void> {
    await this.#control.refreshMany(
      subject,
      stale.map(({ id }) => id),
    );
    await rows.strikeOff(this.#context.db, stale);
  }

  #sealBots(): Promise<number> {
    const { db, secrets } = this.#context;
    return inPages(
      (after) => rows.listBotBoxes(db, after, batchMax),
      ({ id }) => id,
      async (page) => {
        const changes = page.flatMap((was) => {
          const owner = `bot:${was.id}` as const;
          const box = secrets.reseal(was.token_box, owner);
          const hmac = secrets.lookup(secrets.open(was.token_box, owner));
          return box === was.token_box && hmac.equals(was.token_hmac) ? [] : [{ was, box, hmac }];
        });
        if (changes.length === 0) return 0;
        const { changed, stale } = await rows.replaceBotBoxes(db, changes);
        await this.#refresh('bot', stale);
        return changed;
      },
    );
  }

  #sealWebhooks(): Promise<number> {
    const { db, secrets } = this.#context;
    return inPages(
      (after) => rows.listWebhookBoxes(db, after, batchMax),
      ({ bot_id }) => bot_id,
      async (page) => {
        const changes = page.flatMap((was) => {
          const next = resealed(secrets, was);
          const same = (Object.keys(was) as Array<keyof typeof was>).every((at) => was[at] === next[at]);
          return same ? [] : [{ was, next }];
        });
        if (changes.length === 0) return 0;
        const stale = await rows.replaceWebhookBoxes(db, changes);
        await this.#refresh('webhook', stale);
        return stale.length;
      },
    );
  }

  /** Re-encrypts the answers that are stored under idempotency keys. They are only in Redis and expire after a day. */
  async #sealAnswers(): Promise<number> {
    let sealed = 0;
    for (const node of this.#connection.nodes()) {
      for (let cursor = '0'; ; ) {
        const [next, page] = await node.client.scan(cursor, 'MATCH', '*:idempotency:*', 'COUNT', scanKeys);
        const done = await Promise.all(page.map((claim) => this.#sealAnswer(node, claim)));
        sealed += done.filter(Boolean).length;
        cursor = next;
        if (cursor === '0') break;
      }
    }
    return sealed;
  }

  async #sealAnswer(node: RedisConnection, claim: string): Promise<boolean> {
    const { scripts, keys, secrets } = this.#context;
    const [, tag, owner] = /^(\{[^}]*\}):(idempotency:.*)$/.exec(claim) ?? [];
    const partition = Number.parseInt(claim.slice(1), 10);
    if (tag === undefined || keys.partitions.tag(partition) !== tag) return false;
    const was = await node.client.hgetBuffer(claim, 'a');
    if (was === null || keyIdOf(was) === this.#current) return false;
    const box = secrets.reseal(was, owner as BoxOwner);
    return (await scripts.call('idempotency/reseal', partition, { claim }, { was, box })).done;
  }

  async #sealInstallation(): Promise<number> {
    const { db, secrets } = this.#context;
    const was = (await rows.readInstallation(db)).get('TOKEN_ROOT');
    if (was === undefined) return 0;
    const box = Buffer.from(was, 'base64');
    const next = secrets.reseal(box, 'installation:root');
    if (next === box) return 0;
    return (await rows.replaceInstallation(db, 'TOKEN_ROOT', was, next.toString('base64'))) ? 1 : 0;
  }
}
