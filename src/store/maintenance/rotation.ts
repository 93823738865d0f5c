/**
 * Key rotation while the installation is running: re-encrypts everything with the first key, and rehashes bots' tokens
 * with the first pepper. A run examines everything and changes only what needs it, so an interrupted run is simply
 * repeated. Data that changed since it was read is left to the next pass, because the change already used the first
 * key.
 */
import * as rows from '../../postgres/accounts/rotation.js';
import type { RedisConnection, RedisServers } from '../../redis/connection.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies, ControlSubject } from '../core/control.js';
import { type BoxKind, type BoxOwner, keyIdOf } from '../core/secrets.js';
import { sealedFor } from '../webhooks/webhooks.js';

/** The result of a rotation, and what still needs former keys. */
export interface Rotated {
  /** number of re-encrypted boxes by kind */
  readonly sealed: Readonly<Record<BoxKind, number>>;
  /** number of boxes, and of copies with boxes, that still use another key */
  readonly left: number;
  /** number of tokens of people that may still be hashed with a former pepper */
  readonly onFormerPepper: number;
}

export interface Rotation {
  /** Runs a rotation. Every running node must already use the first key and pepper for new data. */
  run(): Promise<Rotated>;
}

const batchMax = 200;
const scanKeys = 1_000;
/** Maximum number of passes. More than two are needed only while old calls are still running. */
const passesMax = 5;

export function createRotation(
  { db, scripts, keys, secrets }: StoreContext,
  control: ControlCopies,
  connection: Pick<RedisServers, 'nodes'>,
): Rotation {
  const current = secrets.checks.keys[0]?.id as string;
  const [pepper] = secrets.checks.peppers as readonly [string];

  /** Refreshes stale copies and removes their rows from the outbox. */
  async function refresh(subject: ControlSubject, stale: readonly rows.StaleCopy[]): Promise<void> {
    await control.refreshMany(
      subject,
      stale.map(({ id }) => id),
    );
    await rows.strikeOff(db, stale);
  }

  async function sealBots(): Promise<number> {
    let sealed = 0;
    for (let after = 0; ; ) {
      const page = await rows.listBotBoxes(db, after, batchMax);
      const changes = page.flatMap((was) => {
        const owner = `bot:${was.id}` as const;
        const box = secrets.reseal(was.token_box, owner);
        const hmac = secrets.lookup(secrets.open(was.token_box, owner));
        return box === was.token_box && hmac.equals(was.token_hmac) ? [] : [{ was, box, hmac }];
      });
      if (changes.length > 0) {
        const { changed, stale } = await rows.replaceBotBoxes(db, changes);
        await refresh('bot', stale);
        sealed += changed;
      }
      const last = page.at(-1);
      if (last === undefined || page.length < batchMax) return sealed;
      after = last.id;
    }
  }

  function resealed(was: rows.WebhookBoxes): rows.WebhookBoxes {
    const seal = (box: Buffer, what: Parameters<typeof sealedFor>[1]) =>
      secrets.reseal(box, sealedFor(was.bot_id, what));
    return {
      bot_id: was.bot_id,
      url_box: was.url_box && seal(was.url_box, 'url'),
      secret_box: was.secret_box && seal(was.secret_box, 'secret'),
      signing_box: seal(was.signing_box, 'signing'),
      former_signing_box: was.former_signing_box && seal(was.former_signing_box, 'signing'),
    };
  }

  async function sealWebhooks(): Promise<number> {
    let sealed = 0;
    for (let after = 0; ; ) {
      const page = await rows.listWebhookBoxes(db, after, batchMax);
      const changes = page.flatMap((was) => {
        const next = resealed(was);
        const same = (Object.keys(was) as Array<keyof rows.WebhookBoxes>).every((at) => was[at] === next[at]);
        return same ? [] : [{ was, next }];
      });
      if (changes.length > 0) {
        const stale = await rows.replaceWebhookBoxes(db, changes);
        await refresh('webhook', stale);
        sealed += stale.length;
      }
      const last = page.at(-1);
      if (last === undefined || page.length < batchMax) return sealed;
      after = last.bot_id;
    }
  }

  /** Re-encrypts stored answers, which are only in Redis and for a day. */
  async function sealAnswers(): Promise<number> {
    let sealed = 0;
    for (const node of connection.nodes()) {
      for (let cursor = '0'; ; ) {
        const [next, page] = await node.client.scan(cursor, 'MATCH', '*:idempotency:*', 'COUNT', scanKeys);
        const done = await Promise.all(page.map((claim) => sealAnswer(node, claim)));
        sealed += done.filter(Boolean).length;
        cursor = next;
        if (cursor === '0') break;
      }
    }
    return sealed;

    async function sealAnswer(node: RedisConnection, claim: string): Promise<boolean> {
      const [, tag, owner] = /^(\{[^}]*\}):(idempotency:.*)$/.exec(claim) ?? [];
      const partition = Number.parseInt(claim.slice(1), 10);
      if (tag === undefined || keys.partitions.tag(partition) !== tag) return false;
      const was = await node.client.hgetBuffer(claim, 'a');
      if (was === null || keyIdOf(was) === current) return false;
      const box = secrets.reseal(was, owner as BoxOwner);
      return (await scripts.call('idempotency/reseal', partition, { claim }, { was, box })).done;
    }
  }

  async function sealInstallation(): Promise<number> {
    const was = (await rows.readInstallation(db)).get('TOKEN_ROOT');
    if (was === undefined) return 0;
    const box = Buffer.from(was, 'base64');
    const next = secrets.reseal(box, 'installation:root');
    if (next === box) return 0;
    return (await rows.replaceInstallation(db, 'TOKEN_ROOT', was, next.toString('base64'))) ? 1 : 0;
  }

  /** The function that re-encrypts boxes of each kind. A missing kind does not compile. */
  const passes: Readonly<Record<BoxKind, () => Promise<number>>> = {
    bot: sealBots,
    webhook: sealWebhooks,
    idempotency: sealAnswers,
    installation: sealInstallation,
  };

  return {
    async run() {
      const sealed = { bot: 0, webhook: 0, idempotency: 0, installation: 0 };
      let left = 0;
      let found = 0;
      let onFormerPepper = 0;
      for (let pass = 0; pass < passesMax; pass++) {
        found = 0;
        for (const kind of Object.keys(passes) as BoxKind[]) {
          const count = await passes[kind]();
          sealed[kind] += count;
          found += count;
        }
        const former = await rows.countFormer(db, current);
        left = former.boxes + former.copies;
        // The process that made a copy stale refreshes it, or the sweep does.
        if (found === 0 && left === 0) break;
      }
      if (left === 0 && found === 0) {
        onFormerPepper = await rows.adoptPepper(db, pepper);
        const noted = await rows.readInstallation(db);
        const ids = [...noted.keys()].filter((name) => name.startsWith('TOKEN_KEYS '));
        await rows.retireKeys(
          db,
          ids.map((name) => name.slice('TOKEN_KEYS '.length)).filter((id) => id !== current),
        );
      }
      return { sealed, left: left + found, onFormerPepper };
    },
  };
}
