import { z } from 'zod';
import { objectErrors, objectParams, sendObject, venueOf, venueParams } from '../../actions/send_object.js';
import { defineMethod } from '../../server/method.js';
import { message } from '../../wire/results.js';

export const sendVenue = defineMethod({
  name: 'sendVenue',
  effect: 'grow',
  summary: 'Sends a place with a name and an address.',
  params: z.object({ ...objectParams, ...venueParams }),
  errors: objectErrors,
  result: message,
  handler: (context, p) => sendObject(context, venueOf(p), p),
});
