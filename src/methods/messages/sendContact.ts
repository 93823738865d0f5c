import { z } from 'zod';
import {
  contactOf,
  contactParams,
  objectErrors,
  objectParams,
  sendObject,
} from '../../actions/send_object.js';
import { defineMethod } from '../../server/method.js';
import { message } from '../../wire/results.js';

export const sendContact = defineMethod({
  name: 'sendContact',
  effect: 'grow',
  summary: 'Sends a phone contact.',
  params: z.object({ ...objectParams, ...contactParams }),
  errors: objectErrors,
  result: message,
  handler: (context, p) => sendObject(context, contactOf(p), p),
});
