/**
 * Manages the webhook settings of bots. A change is committed to Postgres first (law 2). Then `webhooks/switch`
 * switches the bot's queue between polling and webhook, by version. After a crash, the sweep calls that script again.
 */
import { fail } from '../../errors.js';
import {
  loadWebhook,
  nextVersion,
  setWebhook,
  type WebhookColumns,
} from '../../postgres/webhooks/webhooks.js';
import type { Scripts } from '../../redis/scripts/scripts.gen.js';
import { fillAttemptsMax, type StoreContext } from '../core/context.js';
import { type ControlCopies, type SealedWebhook, sealedOf } from '../core/control.js';
import { queueKeys } from '../core/script_keys.js';
import { makeSigningSecret } from '../core/secrets.js';
import { storeLimits as limits } from '../limits.js';
import type { Queues } from '../updates/queues.js';

export interface WebhookSettings {
  readonly url: string;
  readonly secretToken: string | null;
  /** The only certificate to trust, in PEM. Null trusts the public authorities. */
  readonly certificate: string | null;
  readonly maxConnections: number;
  readonly address: string | null;
}

export interface Webhook extends WebhookSettings {
  readonly version: number;
  /** The signing secrets as shown to owners. The current secret comes first. */
  readonly signing: readonly string[];
}

export interface WebhookAsk {
  readonly drop: boolean;
  /** The new mask of update kinds. Null keeps the current mask. */
  readonly mask: number | null;
}

type SwitchArgs = Scripts['webhooks/switch']['args'];

/** Returns the owner of an encrypted box. Only the same owner can decrypt the box. */
export const sealedFor = (bot: number, what: 'url' | 'secret' | 'signing') =>
  `webhook:${bot}:${what}` as const;

export class Webhooks {
  readonly #context: StoreContext;
  readonly #control: ControlCopies;
  readonly #queues: Queues;
  readonly #wake: (bot: number) => void;

  constructor(context: StoreContext, control: ControlCopies, queues: Queues, wake: (bot: number) => void) {
    this.#context = context;
    this.#control = control;
    this.#queues = queues;
    this.#wake = wake;
  }

  #seal(bot: number, what: 'url' | 'secret' | 'signing', text: string) {
    return this.#context.secrets.seal(text, sealedFor(bot, what));
  }

  #opened(bot: number, sealed: SealedWebhook): Webhook | null {
    if (sealed.url === null) return null;
    const open = (what: 'url' | 'secret' | 'signing', box: Buffer) =>
      this.#context.secrets.open(box, sealedFor(bot, what));
    const former =
      sealed.former !== null && (sealed.formerUntil ?? 0) > this.#context.time.now() ? [sealed.former] : [];
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

  async #switchTo(bot: number, args: Omit<SwitchArgs, 'bot'>) {
    const { scripts, keys } = this.#context;
    const partition = keys.partitions.of(bot);
    const at = { ...queueKeys(keys, bot), consumption: keys.consumption(bot) };
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const result = await scripts.call('webhooks/switch', partition, at, { bot: String(bot), ...args });
      if (result.status === 'ok') {
        if (result.wake) this.#wake(bot);
        for (let more = result.more; more; )
          ({ more } = await scripts.call('webhooks/hasten', partition, at, { version: args.set }));
        return;
      }
      await this.#queues.open(bot);
    }
    fail('unavailable', { retry_after: 1 });
  }

  /**
   * Commits, refreshes the copy, and then switches the queue. A worker that takes the lease therefore loads settings
   * that are at least as new as the switch.
   */
  async #change(
    bot: number,
    next: WebhookColumns,
    ask: WebhookAsk,
    differs: (was: Webhook | null) => boolean,
    only: number | null = null,
  ): Promise<boolean> {
    const committed = await setWebhook(this.#context.db, bot, next, {
      signing: this.#seal(bot, 'signing', makeSigningSecret(this.#context.random)),
      drop: ask.drop,
      only,
      differs: (was) => differs(was && this.#opened(bot, sealedOf(was))),
    });
    if (committed === null) return false;
    const version = String(committed.version);
    await this.#control.refresh('webhook', bot);
    await this.#switchTo(bot, {
      version,
      set: String(committed.setVersion),
      active: next.url_box !== null,
      drop: ask.drop ? version : '',
      mask: ask.mask === null ? '' : String(ask.mask),
    });
    return committed.differed;
  }

  set(bot: number, settings: WebhookSettings, ask: WebhookAsk): Promise<boolean> {
    const { url, secretToken, certificate, maxConnections, address } = settings;
    return this.#change(
      bot,
      {
        url_box: this.#seal(bot, 'url', url),
        secret_box: secretToken === null ? null : this.#seal(bot, 'secret', secretToken),
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
  }

  /** Deletes the webhook. Returns true if there was one. */
  remove(bot: number, drop: boolean): Promise<boolean> {
    // Runs the transaction even if there is no webhook, so that a repeated call gets the same answer and drops the same
    // updates.
    return this.#change(bot, none, { drop, mask: null }, (was) => was !== null);
  }

  /** Deletes the webhook if its settings still have this version. */
  async removeVersion(bot: number, version: number) {
    await this.#change(bot, none, { drop: false, mask: null }, () => true, version);
  }

  /** Returns the webhook, or null while the bot polls. */
  async find(bot: number): Promise<Webhook | null> {
    const sealed = await this.#control.read('webhook', bot);
    return sealed && this.#opened(bot, sealed);
  }

  async lost(bot: number) {
    if ((await loadWebhook(this.#context.db, bot)) !== null) return;
    const version = String(await nextVersion(this.#context.db));
    await this.#switchTo(bot, { version, set: version, active: false, drop: '', mask: '' });
  }

  /**
   * Completes a committed change. `dropped` is the version of the change that requested to drop the queue, or 0 if none
   * did.
   */
  async refresh(bot: number, dropped: number) {
    await this.#control.refresh('webhook', bot);
    const row = await loadWebhook(this.#context.db, bot);
    if (row === null) return;
    await this.#switchTo(bot, {
      version: String(row.version),
      set: String(row.set_version),
      active: row.url_box !== null && !row.suspended,
      drop: dropped === 0 ? '' : String(dropped),
      mask: '',
    });
  }
}

const none: WebhookColumns = {
  url_box: null,
  secret_box: null,
  certificate: null,
  max_connections: limits.webhook_connections_default,
  ip_address: null,
};
