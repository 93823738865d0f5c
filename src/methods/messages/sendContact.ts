import { z } from 'zod';
import { objectErrors, objectParams, sendObject } from '../../actions/send_object.js';
import type { Contact } from '../../content/contact.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineMethod } from '../../server/method.js';
import { message } from '../../wire/results.js';
import { optional, shortText } from '../../wire/schema.js';

const words = shortText(limits.object_text_length_max);

export const sendContact = defineMethod({
  name: 'sendContact',
  effect: 'grow',
  summary: 'Sends a phone contact.',
  params: z.object({
    ...objectParams,
    phone_number: words.describe('Phone number, shown as sent'),
    first_name: words.describe('First name of the contact'),
    last_name: optional(words).describe('Last name of the contact'),
    vcard: optional(shortText(limits.vcard_length_max)).describe('vCard with further data of the contact'),
  }),
  errors: objectErrors,
  result: message,
  handler: (context, p) => {
    const { phone_number, first_name, last_name, vcard } = p;
    const contact: Contact = {
      type: 'contact',
      phone_number,
      first_name,
      ...(last_name === undefined ? {} : { last_name }),
      ...(vcard === undefined ? {} : { vcard }),
    };
    return sendObject<Contact>(context, contact, p);
  },
});
