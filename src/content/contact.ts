/** Defines a phone contact. */
import { z } from 'zod';
import type { ContentObject } from '../store/core/codec.js';
import type { ObjectKind } from './kind.js';

export interface Contact extends ContentObject {
  readonly type: 'contact';
  readonly phone_number: string;
  readonly first_name: string;
  readonly last_name?: string;
  readonly vcard?: string;
}

const contactFields = z
  .strictObject({
    phone_number: z.string(),
    first_name: z.string(),
    last_name: z.string().optional(),
    vcard: z.string().optional().describe('vCard with further data of the contact'),
  })
  .meta({ id: 'Contact', description: 'A phone contact.' });

export const contact: ObjectKind<Contact> = {
  sign: '👤',
  fields: { contact: contactFields.optional() },
  view: ({ type: _, ...shown }) => ({ contact: shown }),
  title: ({ first_name, last_name }) => (last_name === undefined ? first_name : `${first_name} ${last_name}`),
};
