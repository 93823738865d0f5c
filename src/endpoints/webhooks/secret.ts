import { z } from 'zod';
import { defineEndpoint } from '../../server/endpoint.js';
import { viewSigningSecret } from '../../view/deliveries.js';
import { botId } from '../../wire/fields.js';
import { signingSecret } from '../../wire/webhook_results.js';

const params = z.object({ bot_id: botId });

export const showSigningSecret = defineEndpoint({
  verb: 'GET',
  path: '/api/me/bots/{bot_id}/webhook/secret',
  summary: 'Returns the signing secret of a bot’s webhook to its owner.',
  params,
  result: signingSecret,
  errors: ['bot_not_found', 'not_bot_owner'],
  handler: async ({ user, store }, p) =>
    viewSigningSecret(await store.signingSecrets.show(user.id, p.bot_id)),
});

export const rotateSigningSecret = defineEndpoint({
  verb: 'POST',
  path: '/api/me/bots/{bot_id}/webhook/secret/rotate',
  summary: 'Replaces the signing secret. For 24 hours, deliveries are signed with both secrets.',
  params,
  result: signingSecret,
  errors: ['bot_not_found', 'not_bot_owner'],
  handler: async ({ user, store }, p) =>
    viewSigningSecret(await store.signingSecrets.rotate(user.id, p.bot_id)),
});
