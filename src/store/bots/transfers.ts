/** Transfers bots to a new owner (interface §3, §5.7). A setting decides whether the new owner must consent first. */
import * as rows from '../../postgres/bots/ownership.js';
import { makeToken } from '../../rules/token.js';
import type { Auth } from '../access/auth.js';
import type { WriteAccessCopies } from '../access/write_access.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import { makeSigningSecret } from '../core/secrets.js';
import { storeLimits as limits } from '../limits.js';
import type { Queues } from '../updates/queues.js';
import { sealedFor, type Webhooks } from '../webhooks/webhooks.js';
import type { RemovalFollowing } from './removal.js';

export type { OfferRow } from '../../postgres/bots/ownership.js';

export interface BotParts {
  readonly control: ControlCopies;
  readonly auth: Auth;
  readonly queues: Queues;
  readonly webhooks: Pick<Webhooks, 'refresh'>;
  readonly access: WriteAccessCopies;
  readonly removal: RemovalFollowing;
}

export class Transfers {
  protected readonly context: StoreContext;
  protected readonly parts: BotParts;

  constructor(context: StoreContext, parts: BotParts) {
    this.context = context;
    this.parts = parts;
  }

  /**
   * Transfers a bot to the person with this username (without `@`). If the recipient must consent first, only offers
   * the bot. A transferred bot gets a new token, which only the recipient can see. Afterwards the former owner has no
   * access, and no node accepts the former token. The webhook, the texts and the queue do not change. Returns true if
   * the bot was transferred. Errors: `bot_not_found`, `not_bot_owner`, `username_unknown`, `username_not_person`,
   * `transfer_to_self`, `recipient_suspended`, `recipient_too_many_bots`.
   */
  async transfer(owner: number, id: number, username: string): Promise<boolean> {
    const { db, transferConsent } = this.context;
    if (transferConsent) {
      await rows.offerBot(db, id, owner, username, limits.transfer_offer_ms);
      return false;
    }
    await this.#handOver(id, () => rows.transferBot(db, id, owner, username, this.#newCredentials(id)));
    return true;
  }

  /** Accepts an offered bot. Errors: `transfer_not_found`, `too_many_bots`. */
  async acceptTransfer(user: number, id: number): Promise<void> {
    await this.#handOver(id, () => rows.acceptBot(this.context.db, id, user, this.#newCredentials(id)));
  }

  /** Withdraws or declines an offer. Error: `transfer_not_found`. */
  async withdrawTransfer(user: number, id: number): Promise<void> {
    await rows.withdrawOffer(this.context.db, id, user);
  }

  transfersOf(user: number, after: number, limit: number) {
    return rows.loadOffers(this.context.db, user, after, limit);
  }

  /**
   * Commits a change of owner and refreshes the copies. If this process dies after the commit, the sweep refreshes
   * them.
   */
  #handOver(id: number, commit: () => Promise<unknown>): Promise<void> {
    const { control, auth, webhooks, access } = this.parts;
    return auth.revoking(`bot:${id}`, async () => {
      await commit();
      await Promise.all([control.forget('bot', id), access.refresh(id), webhooks.refresh(id, 0)]);
    });
  }

  #newCredentials(id: number): rows.NewCredentials {
    const { secrets, random, botsPerOwner } = this.context;
    const token = makeToken('bot', id, random.bytes(32));
    return {
      token: { lookup: secrets.lookup(token), box: secrets.seal(token, `bot:${id}`) },
      signing: secrets.seal(makeSigningSecret(random), sealedFor(id, 'signing')),
      overlapMs: limits.webhook_secret_rotation_ms,
      botsMax: botsPerOwner,
    };
  }
}
