/** Sends content without text or a file, such as a location. */
import { z } from 'zod';
import type { Contact } from '../content/contact.js';
import type { Location } from '../content/location.js';
import type { Venue } from '../content/venue.js';
import type { ErrorName } from '../errors.js';
import { ruleLimits as limits } from '../rules/limits.js';
import type { MethodContext } from '../server/method.js';
import type { ContentObject } from '../store/core/codec.js';
import { type MessageView, viewMessage } from '../view/messages.js';
import { answer, decimal, integer, optional, replyMarkup, shortText } from '../wire/schema.js';
import {
  botSender,
  chatErrors,
  chatOfBot,
  keyboardErrors,
  markupOf,
  type SendingParams,
  sendingOf,
  sendingParams,
} from './compose.js';

export const objectParams = { ...sendingParams, reply_markup: replyMarkup };

export const objectErrors = [
  ...chatErrors,
  'bot_blocked',
  'posting_not_allowed',
  'sending_not_permitted',
  ...keyboardErrors,
  'reply_not_found',
] as const satisfies readonly ErrorName[];

const words = shortText(limits.object_text_length_max);
const providerId = optional(words).describe('Id or type of the place at a provider of maps');

export const locationParams = {
  latitude: decimal(-90, 90).describe('Degrees'),
  longitude: decimal(-180, 180).describe('Degrees'),
  horizontal_accuracy: optional(decimal(0, 1500)).describe('Radius of uncertainty in metres'),
};

const liveNumber = (max: number, error: ErrorName) => {
  const wrong = { error: answer(error) };
  return optional(integer(answer(error)).pipe(z.number().min(0, wrong).max(max, wrong)));
};
const livePeriod = (max: number) => {
  const wrong = answer('live_period_wrong');
  const { live_period_s_min: min, live_period_s_forever: forever } = limits;
  const fits = (given: number) => given === 0 || given === forever || (given >= min && given <= max);
  return optional(integer(wrong).refine(fits, { error: wrong }));
};

/** The parameters of a live location. In each of these parameters, 0 means absent, as in the reference server. */
export const liveParams = {
  live_period: livePeriod(limits.live_period_s_max).describe(
    `How long the location is live: ${limits.live_period_s_min} to ${limits.live_period_s_max} seconds, or ${limits.live_period_s_forever} without an end`,
  ),
  heading: liveNumber(limits.live_heading_max, 'live_heading_wrong').describe(
    `Direction of movement of a live location, 1 to ${limits.live_heading_max} degrees`,
  ),
  proximity_alert_radius: liveNumber(limits.live_alert_radius_m_max, 'live_alert_radius_wrong').describe(
    `1 to ${limits.live_alert_radius_m_max} metres. Stored and shown for a live location, but without effect`,
  ),
};

/** The parameters that move a live location. */
export const liveEditParams = {
  ...liveParams,
  live_period: livePeriod(limits.live_period_s_forever).describe(
    'New period, in seconds from the date of the message. Up to a day more than before, and up to 90 days from now',
  ),
};

export const liveErrors = [
  'live_period_wrong',
  'live_heading_wrong',
  'live_alert_radius_wrong',
] as const satisfies readonly ErrorName[];

export const venueParams = {
  latitude: locationParams.latitude,
  longitude: locationParams.longitude,
  title: words.describe('Name of the place'),
  address: words.describe('Address of the place'),
  foursquare_id: providerId,
  foursquare_type: providerId,
  google_place_id: providerId,
  google_place_type: providerId,
};

export const contactParams = {
  phone_number: words.describe('Phone number, shown as sent'),
  first_name: words.describe('First name of the contact'),
  last_name: optional(words).describe('Last name of the contact'),
  vcard: optional(shortText(limits.vcard_length_max)).describe('vCard with further data of the contact'),
};

type Given<S extends z.ZodRawShape> = z.output<z.ZodObject<S>>;

const present = <T extends object>(fields: T): T =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;

export function locationOf(p: Given<typeof locationParams>): Location {
  const { latitude, longitude, horizontal_accuracy: accuracy } = p;
  return {
    type: 'location',
    latitude,
    longitude,
    ...(accuracy === undefined ? {} : { horizontal_accuracy: accuracy }),
  };
}

/**
 * Builds a location that is live for `live_period` seconds from `now`, a Unix time in seconds. Without a period, the
 * result is a new position for an existing live location.
 */
export function liveLocationOf(p: Given<typeof locationParams & typeof liveParams>, now: number): Location {
  const { live_period: period, heading, proximity_alert_radius: radius } = p;
  return {
    ...locationOf(p),
    ...(heading ? { heading } : {}),
    ...(radius ? { proximity_alert_radius: radius } : {}),
    ...(period ? { live: [period, now + period] as const } : {}),
  };
}

export function venueOf(p: Given<typeof venueParams>): Venue {
  const { latitude, longitude, title, address } = p;
  const { foursquare_id, foursquare_type, google_place_id, google_place_type } = p;
  const ids = present({ foursquare_id, foursquare_type, google_place_id, google_place_type });
  return { type: 'venue', latitude, longitude, title, address, ids: ids as Venue['ids'] };
}

export function contactOf(p: Given<typeof contactParams>): Contact {
  const { phone_number, first_name, last_name, vcard } = p;
  return {
    ...{ type: 'contact', phone_number, first_name },
    ...(last_name === undefined ? {} : { last_name }),
    ...(vcard === undefined ? {} : { vcard }),
  };
}

interface ObjectParams extends SendingParams {
  readonly reply_markup?: Parameters<typeof markupOf>[0];
}

/**
 * Sends the content as a bot. If the content is given as a function, calls it only if no earlier attempt of the same
 * call has sent the message. Errors: `objectErrors`.
 */
export async function sendObject<T extends ContentObject>(
  { bot, store }: MethodContext,
  object: T | (() => T | Promise<T>),
  p: ObjectParams,
): Promise<MessageView> {
  const sender = botSender(bot);
  const chat = chatOfBot(bot.id, p.chat_id);
  const sending = { ...markupOf(p.reply_markup), ...sendingOf(p) };
  const sent = await store.messages.send(
    chat,
    sender,
    typeof object === 'function'
      ? async () => ({ content: { object: await object() }, ...sending })
      : { content: { object }, ...sending },
  );
  return viewMessage(sent, { isBot: true, bot: sender.profile }, store.time);
}
