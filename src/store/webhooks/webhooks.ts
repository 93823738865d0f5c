/**
 * Webhook settings of bots. Postgres stores them (law 2). Then `webhooks/switch` switches the bot's queue between
 * polling and webhook, by version; the sweep repeats this after a crash.
 */
import { nowMs } from '../../clock.js';
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import {
  loadWebhook,
  nextVersion,
  setWebhook,
  type WebhookColumns,
  type WebhookRow,
} from '../../postgres/webhooks/webhooks.js';
import { fillAttemptsMax, type StoreContext } from '../core/context.js';
import type { ControlCopies, SealedWebhook } from '../core/control.js';
import { makeSigningSecret } from '../core/secrets.js';
import type { Queues } from '../updates/queues.js';

/** Webhook settings as requested by a bot. */
export interface WebhookSettings {
  readonly url: string;
  readonly secretToken: string | null;
  /** certificate in PEM, the only trust anchor; null for the public authorities */
  readonly certificate: string | null;
  readonly maxConnections: number;
  /** Address of the host at the time when the webhook was set. */
  readonly address: string | null;
}

/** Webhook settings with decrypted secrets, for deliveries. */
export interface Webhook extends WebhookSettings {
  readonly version: number;
  /** Signing secrets in the form shown to owners, the current one first. */
  readonly signing: readonly string[];
}

export interface Webhooks {
  /** Sets the webhook. Returns true if the settings changed. */
  set(bot: number, settings: WebhookSettings, ask: WebhookAsk): Promise<boolean>;
  /** Deletes the webhook. Returns true if there was one. */
  remove(bot: number, drop: boolean): Promise<boolean>;
  /** Deletes the webhook if its settings still have this version. */
  removeVersion(bot: number, version: number): Promise<void>;
  /** Finds the webhook of a bot. Returns null while the bot polls. */
  find(bot: number): Promise<Webhook | null>;
  /** Switches a bot to polling after its webhook was lost in Postgres. */
  lost(bot: number): Promise<void>;
  /** Completes a committed change; `dropped` is the version that requested to drop the queue, 0 for none. */
  refresh(bot: number, dropped: number): Promise<void>;
}

export interface WebhookAsk {
  /** Whether to drop pending updates. */
  readonly drop: boolean;
  /** New mask of update kinds to receive; null keeps the current one. */
  readonly mask: number | null;
}

/** The owner of an encrypted box. A box can only be decrypted for the same owner. */
export const sealedFor = (bot: number, what: 'url' | 'secret' | 'signing') =>
  `webhook:${bot}:${what}` as const;

export function createWebhooks(
  { db, scripts, keys, secrets }: StoreContext,
  control: ControlCopies,
  queues: Queues,
  wake: (bot: number) => void,
): Webhooks {
  const seal = (bot: number, what: 'url' | 'secret' | 'signing', text: string) =>
    secrets.seal(text, sealedFor(bot, what));

  function opened(bot: number, sealed: SealedWebhook): Webhook | null {
    if (sealed.url === null) return null;
    const open = (what: 'url' | 'secret' | 'signing', box: Buffer) => secrets.open(box, sealedFor(bot, what));
    const former = sealed.former !== null && (sealed.formerUntil ?? 0) > nowMs() ? [sealed.former] : [];
    return {
      version: sealed.version,
      url: open('url', sealed.url),
      secretToken: sealed.secret && open('secret', sealed.secret),
      certificate: sealed.certificate,
      maxConnections: sealed.maxConnections,
      address: sealed.address,
      signing: [sealed.signing, ...former].map((box) => open('signing', box)),
    };
  }

  async function switchTo(
    bot: number,
    args: {
      readonly version: string;
      readonly set: string;
      readonly active: boolean;
      readonly drop: string;
      readonly mask: string;
    },
  ): Promise<void> {
    const partition = keys.partitions.of(bot);
    const at = {
      meta: keys.meta(partition),
      journal: keys.journal(partition),
      state: keys.queueState(bot),
      queue: keys.queue(bot),
      parked: keys.parked(bot),
      retries: keys.retries(bot),
      attempts: keys.attempts(bot),
      due: keys.webhooksDue(partition),
      channel: keys.botChannel(bot),
    };
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const result = await scripts.call('webhooks/switch', partition, at, { bot: String(bot), ...args });
      if (result.status === 'ok') {
        if (result.wake) wake(bot);
        for (let more = result.more; more; )
          ({ more } = await scripts.call('webhooks/hasten', partition, at, { version: args.set }));
        return;
      }
      await queues.open(bot);
    }
    fail('unavailable', { retry_after: 1 });
  }

  /**
   * Commits, refreshes the copy, then switches the queue. With this order, a worker that takes the lease reads
   * settings at least as new.
   */
  async function change(
    bot: number,
    next: WebhookColumns,
    ask: WebhookAsk,
    differs: (was: Webhook | null) => boolean,
    only: number | null = null,
  ): Promise<boolean> {
    const committed = await setWebhook(db, bot, next, {
      signing: seal(bot, 'signing', makeSigningSecret()),
      drop: ask.drop,
      only,
      differs: (was) => differs(was && opened(bot, sealedOf(was))),
    });
    if (committed === null) return false;
    const version = String(committed.version);
    await control.refresh('webhook', bot);
    await switchTo(bot, {
      version,
      set: String(committed.setVersion),
      active: next.url_box !== null,
      drop: ask.drop ? version : '',
      mask: ask.mask === null ? '' : String(ask.mask),
    });
    return committed.differed;
  }

  return {
    set(bot, settings, ask) {
      const { url, secretToken, certificate, maxConnections, address } = settings;
      return change(
        bot,
        {
          url_box: seal(bot, 'url', url),
          secret_box: secretToken === null ? null : seal(bot, 'secret', secretToken),
          certificate,
          max_connections: maxConnections,
          ip_address: address,
        },
        ask,
        (was) =>
          was?.url !== url ||
          was.secretToken !== secretToken ||
          was.certificate !== certificate ||
          was.maxConnections !== maxConnections,
      );
    },
    remove(bot, drop) {
      // Runs the transaction even without a webhook, so that a repeated call gets the same answer and drops as the
      // first one did.
      return change(bot, none, { drop, mask: null }, (was) => was !== null);
    },
    async removeVersion(bot, version) {
      await change(bot, none, { drop: false, mask: null }, () => true, version);
    },
    async find(bot) {
      const sealed = await control.read('webhook', bot);
      return sealed && opened(bot, sealed);
    },
    async lost(bot) {
      if ((await loadWebhook(db, bot)) !== null) return;
      const version = String(await nextVersion(db));
      await switchTo(bot, { version, set: version, active: false, drop: '', mask: '' });
    },
    async refresh(bot, dropped) {
      await control.refresh('webhook', bot);
      const row = await loadWebhook(db, bot);
      if (row === null) return;
      await switchTo(bot, {
        version: String(row.version),
        set: String(row.set_version),
        active: row.url_box !== null && !row.suspended,
        drop: dropped === 0 ? '' : String(dropped),
        mask: '',
      });
    },
  };
}

const none: WebhookColumns = {
  url_box: null,
  secret_box: null,
  certificate: null,
  max_connections: limits.webhook_connections_default,
  ip_address: null,
};

function sealedOf(row: WebhookRow): SealedWebhook {
  return {
    version: row.version,
    url: row.url_box,
    secret: row.secret_box,
    certificate: row.certificate,
    maxConnections: row.max_connections,
    address: row.ip_address,
    signing: row.signing_box,
    former: row.former_signing_box,
    formerUntil: row.former_until,
  };
}
