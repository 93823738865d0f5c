import { z } from 'zod';
import { receiverErrors, receiverParams, receiverSettings } from '../../actions/webhook_params.js';
import { removeWebhook } from '../../actions/webhooks.js';
import { updateMask } from '../../rules/update_kinds.js';
import { Described, defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';
import { allowedUpdates, boolean, optional, text } from '../../wire/schema.js';

/** Sets the webhook (interface §6). Checks everything before it changes anything. */
export const setWebhook = defineMethod({
  name: 'setWebhook',
  effect: 'configure',
  inAnswers: false,
  summary: 'Sets a webhook. Updates are then pushed to the URL of the webhook, and `getUpdates` fails.',
  params: z.object({
    url: optional(text).describe(
      'HTTPS URL, `https://` is added when the scheme is missing. An empty or missing URL deletes the webhook',
    ),
    ...receiverParams,
    allowed_updates: allowedUpdates,
    drop_pending_updates: optional(boolean),
  }),
  errors: receiverErrors,
  result: done,
  handler: async (context, p) => {
    const { bot, store } = context;
    const drop = p.drop_pending_updates ?? false;
    if (p.url === undefined) return removeWebhook(store, bot.id, drop);
    const settings = await receiverSettings(context, { ...p, url: p.url });
    const mask = p.allowed_updates === undefined ? null : updateMask(p.allowed_updates);
    const changed = await store.webhooks.set(bot.id, settings, { drop, mask });
    return new Described(true, changed ? 'Webhook was set' : 'Webhook is already set');
  },
});
