/** What the interface tests of webhooks share: bots that have a webhook receiver, and checks of their webhook info. */
import { expect } from 'vitest';
import { eventually } from '../clients/event_source.js';
import type { Bot, Case, Direct } from './case.js';
import { type Hook, hookAddress } from './hooks.js';
import { ok, refusal } from './row.js';

export interface Hooked extends Direct {
  readonly hook: Hook;
}

export const described = (description: string) => ({ ...ok(true), description });
export const wasSet = () => described('Webhook was set');
export const wasDeleted = () => described('Webhook was deleted');
export const conflict = refusal(
  409,
  "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
);

export const polling =
  (answer?: Hook['answer']) =>
  async (c: Case): Promise<Hooked> => ({ ...(await c.direct()), hook: c.hook(answer) });

export const pushing =
  (answer?: Hook['answer'], more: object = {}) =>
  async (c: Case): Promise<Hooked> => {
    const at = await polling(answer)(c);
    await c.push(at.bot, at.hook, { ...more });
    return at;
  };

export const set = (c: Case, { bot, hook }: Hooked, more: object = {}) =>
  c.call(bot, 'setWebhook', { url: hook.url, certificate: hook.certificate, ...more });
export const info = (c: Case, bot: Bot) => c.result(bot, 'getWebhookInfo');
export const say = (c: Case, { bot }: Hooked, text: string) => c.say(c.ann, bot.id, text);
export const pushed = (count: number, { hook }: Hooked) =>
  eventually(() => expect(hook.arrivals.length).toBeGreaterThanOrEqual(count));
export const textsOf = ({ hook }: Hooked) => hook.arrivals.map(({ update }) => update.message.text);
export const nothingWaits = (c: Case, bot: Bot) =>
  eventually(async () => expect((await info(c, bot)).pending_update_count).toBe(0));
export const failed = (c: Case, bot: Bot) =>
  eventually(async () => expect((await info(c, bot)).last_error_message).not.toBeNull());

export const infoOf = ({ hook }: Hooked, more: object) => ({
  ...{ url: hook.url, has_custom_certificate: true, pending_update_count: 0 },
  ...{ last_error_date: null, last_error_message: null, max_connections: 40, ip_address: hookAddress },
  ...more,
});
