/**
 * Manages bots' webhook settings. A change is first committed to Postgres (law 2). Then the script
 * `webhooks/switch` changes the bot's queue from polling to the webhook, or back. After a crash, the sweep calls this
 * script again.
 */
import { loadRunning } from '../../postgres/webhooks/history_replays.js';
import {
  changeRoutes,
  loadWebhook,
  nextVersion,
  setWebhook,
  type WebhookColumns,
} from '../../postgres/webhooks/webhooks.js';
import { ruleLimits } from '../../rules/limits.js';
import { isSamePolicy, type RetryPolicy } from '../../rules/retry_policy.js';
import { defaultUpdateMask } from '../../rules/update_kinds.js';
import type { StoreContext } from '../core/context.js';
import { type ControlCopies, type SealedWebhook, sealedOf } from '../core/control.js';
import { botOf, queueId, slotOf } from '../core/queue_ids.js';
import {
  noRoutes,
  putRoute,
  type Route,
  type RouteAsk,
  type RouteRecord,
  readRecord,
  routeAt,
  withoutRoute,
  writeRecord,
} from '../core/route_record.js';
import { makeSigningSecret } from '../core/secrets.js';
import { storeLimits as limits } from '../limits.js';
import type { QueueInfo, Queues } from '../updates/queues.js';
import { createQueueSwitch, type QueueSwitch } from './queue_switch.js';
import { createRouteQueues, type RouteQueues } from './route_queues.js';

export interface WebhookSettings {
  readonly url: string;
  readonly secretToken: string | null;
  /** The only certificate to trust, in PEM. If null, the public authorities are trusted. */
  readonly certificate: string | null;
  readonly maxConnections: number;
  readonly address: string | null;
  /** How failed deliveries are retried. Null means the default schedule. */
  readonly retry?: RetryPolicy | null;
}

export interface Webhook extends WebhookSettings {
  readonly version: number;
  /** The signing secrets in the form in which owners see them, the current one first. */
  readonly signing: readonly string[];
  /** Set for the queue of a replay: the id of the replay, and the slot of its target (decision 0081). */
  readonly replay?: { readonly id: number; readonly slot: number };
}

export interface WebhookAsk {
  readonly drop: boolean;
  /** The new mask of update kinds. Null keeps the current mask. */
  readonly mask: number | null;
}

type BoxContent = 'url' | 'secret' | 'signing' | 'routes';

/** Returns the owner to which an encrypted box is bound. Decrypting the box needs the same owner. */
export const sealedFor = (bot: number, what: BoxContent) => `webhook:${bot}:${what}` as const;

export class Webhooks {
  readonly #context: StoreContext;
  readonly #control: ControlCopies;
  readonly #queues: Queues;
  readonly #switch: QueueSwitch;
  readonly #routeQueues: RouteQueues;

  constructor(context: StoreContext, control: ControlCopies, queues: Queues, wake: (queue: number) => void) {
    this.#context = context;
    this.#control = control;
    this.#queues = queues;
    this.#switch = createQueueSwitch(context, queues, wake);
    this.#routeQueues = createRouteQueues(context, queues, this.#switch, wake);
  }

  #seal(bot: number, what: BoxContent, text: string) {
    return this.#context.secrets.seal(text, sealedFor(bot, what));
  }

  #open(bot: number, what: BoxContent, box: Buffer): string {
    return this.#context.secrets.open(box, sealedFor(bot, what));
  }

  #record(bot: number, box: Buffer | null): RouteRecord {
    return box === null ? noRoutes : readRecord(this.#open(bot, 'routes', box));
  }

  /** Returns the valid signing secrets, the current one first. */
  #signing(bot: number, { signing, former, formerUntil }: SealedWebhook): string[] {
    const valid = former !== null && (formerUntil ?? 0) > this.#context.time.now() ? [former] : [];
    return [signing, ...valid].map((box) => this.#open(bot, 'signing', box));
  }

  #opened(bot: number, sealed: SealedWebhook): Webhook | null {
    if (sealed.url === null) return null;
    const open = (what: BoxContent, box: Buffer) => this.#open(bot, what, box);
    return {
      version: sealed.version,
      url: open('url', sealed.url),
      secretToken: sealed.secret && open('secret', sealed.secret),
      certificate: sealed.certificate,
      maxConnections: sealed.maxConnections,
      address: sealed.address,
      retry: sealed.retry,
      signing: this.#signing(bot, sealed),
    };
  }

  /**
   * Changes the webhook settings in this order: commits them, refreshes the copy in Redis, and switches the queue. A
   * worker that gets a lease after the switch therefore loads settings that are at least as new.
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
    await this.#switch.to(bot, {
      version,
      set: String(committed.setVersion),
      active: next.url_box !== null,
      drop: ask.drop ? version : '',
      mask: ask.mask === null ? '' : String(ask.mask),
    });
    return committed.differed;
  }

  set(bot: number, settings: WebhookSettings, ask: WebhookAsk): Promise<boolean> {
    const { url, secretToken, certificate, maxConnections, address, retry = null } = settings;
    return this.#change(
      bot,
      {
        url_box: this.#seal(bot, 'url', url),
        secret_box: secretToken === null ? null : this.#seal(bot, 'secret', secretToken),
        certificate,
        max_connections: maxConnections,
        ip_address: address,
        retry,
      },
      ask,
      (was) =>
        was?.url !== url ||
        was.secretToken !== secretToken ||
        was.certificate !== certificate ||
        was.maxConnections !== maxConnections ||
        !isSamePolicy(was.retry ?? null, retry),
    );
  }

  /** Deletes the webhook. Returns true if there was a webhook. */
  remove(bot: number, drop: boolean): Promise<boolean> {
    // Runs the transaction even if there is no webhook. A repeated call then gets the same answer and drops the same
    // updates.
    return this.#change(bot, none, { drop, mask: null }, (was) => was !== null);
  }

  /** Deletes the webhook of a queue. Returns false if the version of the bot's settings is no longer `version`. */
  async removeVersion(queue: number, version: number): Promise<boolean> {
    const bot = botOf(queue);
    if (queue === bot) return this.#change(bot, none, { drop: false, mask: null }, () => true, version);
    const route = (await this.routes(bot)).find(({ slot }) => slot === slotOf(queue));
    return route !== undefined && this.removeRoute(bot, route.name, false, version);
  }

  /**
   * Returns the webhook for a replay's queue: the webhook of the replay's target, with fewer connections. Returns null
   * for a suspended bot.
   */
  async #findReplay(bot: number): Promise<Webhook | null> {
    const running = await loadRunning(this.#context.db, bot);
    if (running === null || (await this.#control.read('bot', bot))?.state !== undefined) return null;
    const { id, slot, started } = running;
    // Needs the route and not only its slot, because the slot of a deleted route may belong to another route by now.
    if (slot !== 0 && !routeAt(await this.routes(bot), slot, started * 1_000)) return null;
    const target = await this.find(queueId(bot, slot));
    if (target === null) return null;
    const share = Math.floor(target.maxConnections / 4);
    const maxConnections = Math.max(1, Math.min(limits.replay_connections_max, share));
    return { ...target, maxConnections, replay: { id, slot } };
  }

  /** Returns the webhook of a queue. Returns null if the bot polls, or if the route was deleted. */
  async find(queue: number): Promise<Webhook | null> {
    const bot = botOf(queue);
    if (slotOf(queue) === ruleLimits.replay_slot) return this.#findReplay(bot);
    const sealed = await this.#control.read('webhook', bot);
    if (sealed === null || queue === bot) return sealed && this.#opened(bot, sealed);
    const { routes } = this.#record(bot, sealed.routes);
    const route = routes.find(({ slot }) => slot === slotOf(queue));
    if (route === undefined) return null;
    return { ...route, version: sealed.version, signing: this.#signing(bot, sealed) };
  }

  /** Returns the routes of a bot, in their order. */
  async routes(bot: number): Promise<readonly Route[]> {
    const sealed = await this.#control.read('webhook', bot);
    return this.#record(bot, sealed?.routes ?? null).routes;
  }

  /** Returns whether an encrypted record contains any routes. If the record cannot be decrypted, returns true. */
  hasRoutes(bot: number, box: Buffer): boolean {
    try {
      return this.#record(bot, box).routes.length > 0;
    } catch {
      return true;
    }
  }

  #changeRoutes(
    bot: number,
    name: string,
    event: 'webhook_route_set' | 'webhook_route_deleted',
    only: number | null,
    change: (record: RouteRecord, version: number) => RouteRecord | null,
  ): Promise<boolean> {
    return changeRoutes(this.#context.db, bot, {
      ...{ event, name, only },
      signing: this.#seal(bot, 'signing', makeSigningSecret(this.#context.random)),
      change: (box, version) => {
        const was = this.#record(bot, box);
        const next = change(was, version);
        const changed = [...(next?.routes ?? []), ...was.routes].find((route) => route.name === name);
        if (next === null || changed === undefined) return null;
        return { box: this.#seal(bot, 'routes', writeRecord(next)), slot: changed.slot };
      },
    });
  }

  /** Adds or replaces a route. Errors: `too_many_routes`, `routes_too_large`. */
  async setRoute(bot: number, ask: RouteAsk): Promise<void> {
    await this.#changeRoutes(bot, ask.name, 'webhook_route_set', null, (record, version) =>
      putRoute(record, ask, version, defaultUpdateMask, this.#context.time.now()),
    );
    await this.refresh(bot, 0);
  }

  /**
   * Deletes a route. Its pending updates are dropped if `drop` is true, and otherwise move to the bot's own queue.
   * Returns false if there is no route of this name, or if the version of the bot's settings is not `only`.
   */
  async removeRoute(bot: number, name: string, drop: boolean, only: number | null = null): Promise<boolean> {
    const removed = await this.#changeRoutes(bot, name, 'webhook_route_deleted', only, (record, version) =>
      withoutRoute(record, name, drop, version),
    );
    await this.refresh(bot, 0);
    return removed;
  }

  /** Returns the state of a bot's routes, in their order. */
  async routeStates(bot: number): Promise<ReadonlyArray<Route & { readonly info: QueueInfo }>> {
    const routes = await this.routes(bot);
    const infos = await Promise.all(routes.map(({ slot }) => this.#queues.info(queueId(bot, slot))));
    return routes.map((route, i) => ({ ...route, info: infos[i] as QueueInfo }));
  }

  async lost(bot: number) {
    if ((await loadWebhook(this.#context.db, bot)) !== null) return;
    const version = String(await nextVersion(this.#context.db));
    await this.#switch.to(bot, { version, set: version, active: false, drop: '', mask: '' });
    await this.#routeQueues.apply(bot, noRoutes, Number(version), false);
  }

  /**
   * Completes a committed change. `dropped` is the version of the last change that requested to drop the queue, or 0 if
   * there was none.
   */
  async refresh(bot: number, dropped: number) {
    // Reads the row before the copy is refreshed. If another change is committed in between, the copy is newer than the
    // row. Workers thus never find a copy that is older than the switch.
    const row = await loadWebhook(this.#context.db, bot);
    await this.#control.refresh('webhook', bot);
    if (row === null) return;
    await this.#switch.to(bot, {
      version: String(row.version),
      set: String(row.set_version),
      active: row.url_box !== null && !row.suspended,
      drop: dropped === 0 ? '' : String(dropped),
      mask: '',
    });
    await this.#routeQueues.apply(bot, this.#record(bot, row.routes_box), row.version, !row.suspended);
    if (row.suspended) await this.#stopReplay(bot, String(row.version));
  }

  /** Stops the deliveries of a replay. A worker then ends the replay. */
  #stopReplay(bot: number, version: string) {
    const queue = queueId(bot, ruleLimits.replay_slot);
    return this.#switch.tryTo(queue, { version, set: version, active: false, drop: '', mask: '' });
  }
}

const none: WebhookColumns = {
  url_box: null,
  secret_box: null,
  certificate: null,
  max_connections: limits.webhook_connections_default,
  ip_address: null,
  retry: null,
};
