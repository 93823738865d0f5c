import { z } from 'zod';
import {
  locationOf,
  locationParams,
  objectErrors,
  objectParams,
  sendObject,
} from '../../actions/send_object.js';
import { defineMethod } from '../../server/method.js';
import { message } from '../../wire/results.js';
import { unsupported } from '../../wire/schema.js';

/** Sends a point on the map. Live locations are not supported. */
export const sendLocation = defineMethod({
  name: 'sendLocation',
  effect: 'grow',
  summary: 'Sends a point on the map.',
  params: z.object({
    ...objectParams,
    ...locationParams,
    live_period: unsupported('locations are not live'),
  }),
  errors: objectErrors,
  result: message,
  handler: (context, p) => sendObject(context, locationOf(p), p),
});
