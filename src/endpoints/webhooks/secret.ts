import { z } from 'zod';
import { defineEndpoint } from '../../server/endpoint.js';
import { viewSigningSecret } from '../../view/deliveries.js';
import { botId } from '../../wire/fields.js';
import { signingSecret } from '../../wire/webhook_results.js';

const params = z.object({ bot_id: botId });

export const showSigningSecret = defineEndpoint({
  verb: 'GET',
  path: '/api/me/bots/{bot_id}/webhook/secret',
  summary: 'Returns the secret that signs the webhook deliveries of one of the caller’s bots.',
  params,
  result: signingSecret,
  errors: ['bot_not_found', 'not_bot_owner'],
  handler: async ({ user, store }, p) =>
    viewSigningSecret(await store.signingSecrets.show(user.id, p.bot_id)),
});

export const rotateSigningSecret = defineEndpoint({
  verb: 'POST',
  path: '/api/me/bots/{bot_id}/webhook/secret/rotate',
  summary:
    'Replaces the secret that signs webhook deliveries. For the next 24 hours, deliveries are signed with both the old and the new secret.',
  params,
  result: signingSecret,
  errors: ['bot_not_found', 'not_bot_owner'],
  handler: async ({ user, store }, p) =>
    viewSigningSecret(await store.signingSecrets.rotate(user.id, p.bot_id)),
});
