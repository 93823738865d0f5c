import { z } from 'zod';
import { objectErrors, objectParams, sendObject } from '../../actions/send_object.js';
import type { Location } from '../../content/location.js';
import { defineMethod } from '../../server/method.js';
import { message } from '../../wire/results.js';
import { decimal, optional, unsupported } from '../../wire/schema.js';

/** Sends a point on the map. Live locations are not supported. */
export const sendLocation = defineMethod({
  name: 'sendLocation',
  effect: 'grow',
  summary: 'Sends a point on the map.',
  params: z.object({
    ...objectParams,
    latitude: decimal(-90, 90).describe('Degrees'),
    longitude: decimal(-180, 180).describe('Degrees'),
    horizontal_accuracy: optional(decimal(0, 1500)).describe('Radius of uncertainty in metres'),
    live_period: unsupported('locations are not live'),
  }),
  errors: objectErrors,
  result: message,
  handler: (context, p) => {
    const { latitude, longitude, horizontal_accuracy } = p;
    const accuracy = horizontal_accuracy === undefined ? {} : { horizontal_accuracy };
    return sendObject<Location>(context, { type: 'location', latitude, longitude, ...accuracy }, p);
  },
});
