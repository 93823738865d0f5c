/** Shows owners the secrets by which webhook requests are signed, and rotates these secrets (behaviour §10). */
import { fail } from '../../errors.js';
import {
  ensureWebhook,
  loadOwnWebhook,
  rotateSigning,
  type WebhookRow,
} from '../../postgres/webhooks/webhooks.js';
import type { StoreContext } from '../core/context.js';
import { makeSigningSecret } from '../core/secrets.js';
import { storeLimits as limits } from '../limits.js';
import { sealedFor, type Webhooks } from '../webhooks/webhooks.js';
import type { Bots } from './bots.js';

export interface SigningSecret {
  readonly secret: string;
  /**
   * The Unix time in ms until which deliveries are also signed with the former secret. Null if there is no former
   * secret.
   */
  readonly formerUntil: number | null;
}

export function createSigningSecrets(
  { db, secrets, time, random }: StoreContext,
  bots: Pick<Bots, 'owned'>,
  webhooks: Pick<Webhooks, 'refresh'>,
) {
  const sealed = (bot: number) => secrets.seal(makeSigningSecret(random), sealedFor(bot, 'signing'));
  const shown = (bot: number, row: WebhookRow): SigningSecret => ({
    secret: secrets.open(row.signing_box, sealedFor(bot, 'signing')),
    formerUntil: (row.former_until ?? 0) > time.now() ? row.former_until : null,
  });

  return {
    /** Returns the bot's signing secret. Creates it if there is none. Errors: `bot_not_found`, `not_bot_owner`. */
    async show(owner: number, bot: number): Promise<SigningSecret> {
      await bots.owned(owner, bot);
      // Checks again that the caller owns the bot, because the bot may have a new owner since the first check.
      const own = (await ensureWebhook(db, bot, owner, sealed(bot))) ?? fail('not_bot_owner');
      if (own.made) await webhooks.refresh(bot, 0);
      return shown(bot, own.row);
    },
    /**
     * Replaces the signing secret. For limits.webhook_secret_rotation_ms, deliveries are also signed with the former
     * secret. Errors: `bot_not_found`, `not_bot_owner`.
     */
    async rotate(owner: number, bot: number): Promise<SigningSecret> {
      await bots.owned(owner, bot);
      // Checks again that the caller owns the bot, because the bot may have a new owner since the first check.
      if (!(await rotateSigning(db, bot, owner, sealed(bot), limits.webhook_secret_rotation_ms)))
        return fail('not_bot_owner');
      // Raises the version of the webhook settings, so that running deliveries reload them.
      await webhooks.refresh(bot, 0);
      const row = await loadOwnWebhook(db, bot, owner);
      return row ? shown(bot, row) : fail('not_bot_owner');
    },
  };
}
