/**
 * Transfers of bots to another owner (interface §3, §5.7): immediate, or, depending on a setting, after the recipient's
 * consent.
 */
import { randomBytes } from 'node:crypto';
import { limits } from '../../limits.js';
import * as rows from '../../postgres/bots/ownership.js';
import { makeToken } from '../../rules/token.js';
import type { Auth } from '../access/auth.js';
import type { WriteAccessCopies } from '../access/write_access.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import { makeSigningSecret } from '../core/secrets.js';
import { sealedFor, type Webhooks } from '../webhooks/webhooks.js';

export type { OfferRow } from '../../postgres/bots/ownership.js';

export interface Transfers {
  /**
   * Transfers a bot to the person with this username (without `@`). The bot gets a new token, which only the recipient
   * can see. Once this returns, the former owner has no access and no node accepts the former token. Webhook, texts and
   * queue are kept. Where transfers need consent, the bot is only offered. Returns true if the bot was transferred.
   * Errors: `bot_not_found`, `not_bot_owner`, `username_unknown`, `username_not_person`, `transfer_to_self`,
   * `recipient_suspended`, `recipient_too_many_bots`.
   */
  transfer(owner: number, id: number, username: string): Promise<boolean>;
  /** Accepts a bot that was offered to this person. Errors: `transfer_not_found`, `too_many_bots`. */
  acceptTransfer(user: number, id: number): Promise<void>;
  /** Withdraws or declines an offer. Error: `transfer_not_found`. */
  withdrawTransfer(user: number, id: number): Promise<void>;
  /** Offers that a person made or received, of bots with ids after `after`, sorted by bot id. */
  transfersOf(user: number, after: number, limit: number): Promise<readonly rows.OfferRow[]>;
}

export function createTransfers(
  { db, secrets, transferConsent, botsPerOwner }: StoreContext,
  parts: {
    readonly control: ControlCopies;
    readonly auth: Auth;
    readonly webhooks: Pick<Webhooks, 'refresh'>;
    readonly access: WriteAccessCopies;
  },
): Transfers {
  const { control, auth, webhooks, access } = parts;

  function newCredentials(id: number): rows.NewCredentials {
    const token = makeToken('bot', id, randomBytes(32));
    return {
      token: { lookup: secrets.lookup(token), box: secrets.seal(token, `bot:${id}`) },
      signing: secrets.seal(makeSigningSecret(), sealedFor(id, 'signing')),
      overlapMs: limits.webhook_secret_rotation_ms,
      botsMax: botsPerOwner,
    };
  }

  /** Commits a change of owner and does the cleanup. After a crash, the sweep does the cleanup. */
  const handOver = (id: number, commit: () => Promise<unknown>): Promise<void> =>
    auth.revoking(`bot:${id}`, async () => {
      await commit();
      await Promise.all([control.forget('bot', id), access.refresh(id), webhooks.refresh(id, 0)]);
    });

  return {
    async transfer(owner, id, username) {
      if (transferConsent) {
        await rows.offerBot(db, id, owner, username, limits.transfer_offer_ms);
        return false;
      }
      await handOver(id, () => rows.transferBot(db, id, owner, username, newCredentials(id)));
      return true;
    },
    async acceptTransfer(user, id) {
      await handOver(id, () => rows.acceptBot(db, id, user, newCredentials(id)));
    },
    async withdrawTransfer(user, id) {
      await rows.withdrawOffer(db, id, user);
    },
    transfersOf: (user, after, limit) => rows.loadOffers(db, user, after, limit),
  };
}
