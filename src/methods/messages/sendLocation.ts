import { z } from 'zod';
import {
  liveErrors,
  liveLocationOf,
  liveParams,
  locationOf,
  locationParams,
  objectErrors,
  objectParams,
  sendObject,
} from '../../actions/send_object.js';
import { defineMethod } from '../../server/method.js';
import { message } from '../../wire/results.js';

/** Sends a point on the map. With `live_period` the bot can move the point until the period ends (behaviour §4). */
export const sendLocation = defineMethod({
  name: 'sendLocation',
  effect: 'grow',
  summary: 'Sends a point on the map. With `live_period`, the bot can move the point later.',
  params: z.object({ ...objectParams, ...locationParams, ...liveParams }),
  errors: [...objectErrors, ...liveErrors],
  result: message,
  handler: (context, p) => {
    const location = p.live_period ? liveLocationOf(p, context.store.time.nowSeconds()) : locationOf(p);
    return sendObject(context, location, p);
  },
});
