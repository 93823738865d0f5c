/** Bots that change hands (interface §3, §5.7): at once, or by setting once the recipient has agreed. */
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
   * Hands a bot to the person who has this username (without `@`), with a new token, which the recipient alone can be shown:
   * when this returns, the former owner is refused and no node accepts the former token. Webhook, texts and queue stay. Where
   * transfers need consent it is offered instead. True when it changed hands. Errors: `bot_not_found`, `not_bot_owner`,
   * `username_unknown`, `username_not_person`, `transfer_to_self`, `recipient_suspended`, `recipient_too_many_bots`.
   */
  transfer(owner: number, id: number, username: string): Promise<boolean>;
  /** Takes a bot that was offered to this person. Errors: `transfer_not_found`, `too_many_bots`. */
  acceptTransfer(user: number, id: number): Promise<void>;
  /** Strikes off an offer, by who made it or who got it. Error: `transfer_not_found`. */
  withdrawTransfer(user: number, id: number): Promise<void>;
  /** Offers that a person made or got, of bots behind an id, in the order of the bots' ids. */
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

  function anew(id: number): rows.Anew {
    const token = makeToken('bot', id, randomBytes(32));
    return {
      token: { lookup: secrets.lookup(token), box: secrets.seal(token, `bot:${id}`) },
      signing: secrets.seal(makeSigningSecret(), sealedFor(id, 'signing')),
      overlapMs: limits.webhook_secret_rotation_ms,
      botsMax: botsPerOwner,
    };
  }

  /** Commits a change of owner and does what follows; the sweep does the same for a process that died. */
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
      await handOver(id, () => rows.transferBot(db, id, owner, username, anew(id)));
      return true;
    },
    async acceptTransfer(user, id) {
      await handOver(id, () => rows.acceptBot(db, id, user, anew(id)));
    },
    async withdrawTransfer(user, id) {
      await rows.withdrawOffer(db, id, user);
    },
    transfersOf: (user, after, limit) => rows.loadOffers(db, user, after, limit),
  };
}
