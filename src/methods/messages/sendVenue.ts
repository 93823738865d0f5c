import { z } from 'zod';
import { objectErrors, objectParams, sendObject } from '../../actions/send_object.js';
import type { Venue } from '../../content/venue.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineMethod } from '../../server/method.js';
import { message } from '../../wire/results.js';
import { decimal, optional, shortText } from '../../wire/schema.js';

const words = shortText(limits.object_text_length_max);
const id = optional(words).describe('Id or type of the place at a provider of maps');

export const sendVenue = defineMethod({
  name: 'sendVenue',
  effect: 'grow',
  summary: 'Sends a place with a name and an address.',
  params: z.object({
    ...objectParams,
    latitude: decimal(-90, 90).describe('Degrees'),
    longitude: decimal(-180, 180).describe('Degrees'),
    title: words.describe('Name of the place'),
    address: words.describe('Address of the place'),
    foursquare_id: id,
    foursquare_type: id,
    google_place_id: id,
    google_place_type: id,
  }),
  errors: objectErrors,
  result: message,
  handler: (context, p) => {
    const { latitude, longitude, title, address } = p;
    const { foursquare_id, foursquare_type, google_place_id, google_place_type } = p;
    const given = Object.entries({ foursquare_id, foursquare_type, google_place_id, google_place_type });
    const ids = Object.fromEntries(given.filter(([, value]) => value !== undefined));
    return sendObject<Venue>(context, { type: 'venue', latitude, longitude, title, address, ids }, p);
  },
});
