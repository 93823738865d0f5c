import { z } from 'zod';
import { receiverErrors, receiverParams, receiverSettings } from '../../actions/webhook_params.js';
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { updateMask } from '../../rules/update_kinds.js';
import { Described, defineMethod } from '../../server/method.js';
import { chatText, directChat, sharedChat } from '../../store/core/keys.js';
import { done } from '../../wire/results.js';
import {
  allowedUpdates,
  answer,
  boolean,
  integer,
  json,
  optional,
  routeName,
  text,
} from '../../wire/schema.js';

const badChats = { error: answer('route_chats_invalid') };
const idMax = limits.id_max - 1;
const chats = json(
  z
    .array(
      z
        .number(badChats)
        .int(badChats)
        .min(-idMax, badChats)
        .max(idMax, badChats)
        .refine((id) => id !== 0, badChats),
      badChats,
    )
    .min(1, badChats)
    .max(limits.route_chats_max, badChats),
);

const badCommands = { error: answer('route_commands_invalid') };
const command = z
  .string(badCommands)
  .regex(new RegExp(`^/?[a-z0-9_]{1,${limits.command_name_length_max}}$`), badCommands);
const commands = json(
  z.array(command, badCommands).min(1, badCommands).max(limits.route_commands_max, badCommands),
);

/** Removes the leading slashes of commands, and duplicate commands. */
const namesOf = (commands: readonly string[]): string[] => [
  ...new Set(commands.map((command) => command.replace(/^\//, ''))),
];

const within = (max: number, kind: 'route_percent_invalid' | 'route_position_invalid') => {
  const bad = { error: answer(kind) };
  return integer(answer(kind)).pipe(z.number().min(1, bad).max(max, bad));
};

/**
 * Returns the sorted names of chats in the store. A positive id is the id of a person, and means the bot's direct chat
 * with this person.
 */
const textsOf = (bot: number, ids: readonly number[]): string[] =>
  [...new Set(ids.map((id) => chatText(id > 0 ? directChat(bot, id) : sharedChat(id))))].sort();

/** Adds or replaces a webhook route (behaviour §10). Checks all parameters before it changes anything. */
export const setWebhookRoute = defineMethod({
  name: 'setWebhookRoute',
  effect: 'configure',
  inAnswers: false,
  summary: `Sets a webhook route. A bot has an ordered list of up to ${limits.routes_max} routes. An update goes to the first route that matches the update. If no route matches an update, the update goes to the webhook, or to polls if the bot has no webhook.`,
  params: z.object({
    name: routeName,
    url: text.describe('HTTPS URL, `https://` is added when the scheme is missing'),
    ...receiverParams,
    allowed_updates: allowedUpdates,
    drop_pending_updates: optional(boolean).describe('Drops the pending updates of this route'),
    chat_ids: optional(chats).describe(
      `The route takes only updates of these chats, up to ${limits.route_chats_max}. The id of a person means the direct chat`,
    ),
    percent: optional(within(limits.route_percent_max, 'route_percent_invalid')).describe(
      'The route takes only this percentage of chats, 1 to 100. The name of the route decides which chats these are',
    ),
    commands: optional(commands).describe(
      `The route takes only texts that begin with one of these commands, up to ${limits.route_commands_max}. A command that names another bot is not taken`,
    ),
    position: optional(within(limits.routes_max, 'route_position_invalid')).describe(
      'Place in the list, from 1. Absent keeps the place, or appends a new route',
    ),
  }),
  errors: [
    ...receiverErrors,
    ...(['route_name_invalid', 'route_position_invalid', 'route_chats_invalid'] as const),
    ...(['route_percent_invalid', 'route_commands_invalid', 'route_filters_exclusive'] as const),
    ...(['too_many_routes', 'routes_too_large'] as const),
  ],
  result: done,
  handler: async (context, p) => {
    const { bot, store } = context;
    if (p.chat_ids !== undefined && p.percent !== undefined) fail('route_filters_exclusive');
    const settings = await receiverSettings(context, p);
    await store.webhooks.setRoute(bot.id, {
      ...settings,
      name: p.name,
      mask: p.allowed_updates === undefined ? null : updateMask(p.allowed_updates),
      chats: p.chat_ids === undefined ? null : textsOf(bot.id, p.chat_ids),
      percent: p.percent ?? limits.route_percent_max,
      commands:
        p.commands === undefined
          ? null
          : { names: namesOf(p.commands), username: bot.username.toLowerCase() },
      position: p.position ?? null,
      drop: p.drop_pending_updates ?? false,
    });
    return new Described(true, 'Webhook route was set');
  },
});
