/** Checks the parameters that `setWebhook` and `setWebhookRoute` share. */
import { z } from 'zod';
import { callLimits } from '../server/limits.js';
import type { MethodContext } from '../server/method.js';
import { storeLimits } from '../store/limits.js';
import type { WebhookSettings } from '../store/webhooks/webhooks.js';
import { answer, integer, optional, retryPolicy, text } from '../wire/schema.js';

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

export const receiverParams = {
  certificate: optional(text).describe(
    'Uploaded file: PEM certificate of the receiver or its issuer, for certificates that no public authority signed',
  ),
  max_connections: optional(connections).describe('Maximum parallel deliveries, 1 to 100; default 40'),
  secret_token: optional(secretToken).describe(
    'Sent with each delivery: up to 256 letters, digits, hyphens and underscores',
  ),
  retry_policy: retryPolicy,
};

export const receiverErrors = [
  ...([
    'webhook_url_not_https',
    'webhook_url_invalid',
    'webhook_port_refused',
    'webhook_address_reserved',
  ] as const),
  ...(['webhook_host_unresolved', 'webhook_secret_too_long', 'webhook_secret_invalid'] as const),
  'retry_policy_invalid',
  ...(['webhook_connections_wrong', 'certificate_too_big', 'certificate_invalid'] as const),
] as const;

/**
 * Returns the certificate: the uploaded part that the parameter names, the part named `certificate`, or the PEM text in
 * the parameter itself.
 */
function certificateOf({ uploads, receivers }: MethodContext, given: string | undefined): string | null {
  const part = given?.startsWith(attached) ? given.slice(attached.length) : 'certificate';
  const bytes = uploads.get(part)?.bytes ?? (given === undefined ? undefined : Buffer.from(given));
  return bytes === undefined ? null : receivers.readCertificate(bytes);
}

type Given = { readonly url: string } & {
  readonly [K in keyof typeof receiverParams]?: z.output<(typeof receiverParams)[K]>;
};

/** Checks the URL and the certificate, and returns the settings of the receiver. Errors: `receiverErrors`. */
export async function receiverSettings(context: MethodContext, p: Given): Promise<Required<WebhookSettings>> {
  const { bot, store, receivers } = context;
  const certificate = certificateOf(context, p.certificate);
  const { target, address } = await receivers.vet(p.url, () => store.lookUps.take(bot.owner, bot.id));
  return {
    url: target.url,
    secretToken: p.secret_token ?? null,
    certificate,
    maxConnections: p.max_connections ?? storeLimits.webhook_connections_default,
    address,
    retry: p.retry_policy ?? null,
  };
}
