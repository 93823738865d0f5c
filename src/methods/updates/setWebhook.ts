import { z } from 'zod';
import { removeWebhook } from '../../actions/webhooks.js';
import { updateMask } from '../../rules/update_kinds.js';
import { callLimits } from '../../server/limits.js';
import { Described, defineMethod, type MethodContext } from '../../server/method.js';
import { storeLimits } from '../../store/limits.js';
import { done } from '../../wire/results.js';
import { allowedUpdates, answer, boolean, integer, optional, text } from '../../wire/schema.js';

const attached = 'attach://';

const connections = integer(answer('webhook_connections_wrong')).pipe(
  z
    .number()
    .min(callLimits.webhook_connections_min, { error: answer('webhook_connections_wrong') })
    .max(storeLimits.webhook_connections_max_per_bot, { error: answer('webhook_connections_wrong') }),
);

const secretToken = text
  .max(callLimits.webhook_secret_length_max, { error: answer('webhook_secret_too_long') })
  .regex(/^[A-Za-z0-9_-]+$/, { error: answer('webhook_secret_invalid') });

/**
 * Returns the certificate. It is the uploaded part that the parameter names, the part `certificate`, or the PEM text in
 * the parameter itself.
 */
function certificateOf({ uploads, receivers }: MethodContext, given: string | undefined): string | null {
  const part = given?.startsWith(attached) ? given.slice(attached.length) : 'certificate';
  const bytes = uploads.get(part)?.bytes ?? (given === undefined ? undefined : Buffer.from(given));
  return bytes === undefined ? null : receivers.readCertificate(bytes);
}

/** Registers a webhook URL (interface §6). Checks everything before it changes anything. */
export const setWebhook = defineMethod({
  name: 'setWebhook',
  effect: 'configure',
  inAnswers: false,
  summary: 'Sets a webhook. Updates are then pushed to its URL and can no longer be polled.',
  params: z.object({
    url: optional(text).describe(
      'HTTPS URL, `https://` is added when the scheme is missing. An empty or missing URL deletes the webhook',
    ),
    certificate: optional(text).describe(
      'Uploaded file: PEM certificate of the receiver or its issuer, for certificates that no public authority signed',
    ),
    max_connections: optional(connections).describe('Maximum parallel deliveries, 1 to 100; default 40'),
    allowed_updates: allowedUpdates,
    drop_pending_updates: optional(boolean),
    secret_token: optional(secretToken).describe(
      'Sent with each delivery: up to 256 letters, digits, hyphens and underscores',
    ),
  }),
  errors: [
    ...([
      'webhook_url_not_https',
      'webhook_url_invalid',
      'webhook_port_refused',
      'webhook_address_reserved',
    ] as const),
    ...(['webhook_host_unresolved', 'webhook_secret_too_long', 'webhook_secret_invalid'] as const),
    ...(['webhook_connections_wrong', 'certificate_too_big', 'certificate_invalid'] as const),
  ],
  result: done,
  handler: async (context, p) => {
    const { bot, store, receivers } = context;
    const drop = p.drop_pending_updates ?? false;
    if (p.url === undefined) return removeWebhook(store, bot.id, drop);
    const certificate = certificateOf(context, p.certificate);
    const { target, address } = await receivers.vet(p.url, () => store.lookUps.take(bot.owner, bot.id));
    const changed = await store.webhooks.set(
      bot.id,
      {
        url: target.url,
        secretToken: p.secret_token ?? null,
        certificate,
        maxConnections: p.max_connections ?? storeLimits.webhook_connections_default,
        address,
      },
      { drop, mask: p.allowed_updates === undefined ? null : updateMask(p.allowed_updates) },
    );
    return new Described(true, changed ? 'Webhook was set' : 'Webhook is already set');
  },
});
