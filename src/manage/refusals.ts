/** The texts for refused operations in the person's language. They replace the English texts in `errors.ts`. */
import type { ErrorName } from '../errors.js';
import type { TextKey } from './texts.js';

const said: Partial<Record<ErrorName, TextKey>> = {
  unavailable: 'later',
  too_many_requests: 'later',
  not_bot_owner: 'not_yours',
  bot_not_found: 'not_yours',
  name_invalid: 'name_invalid',
  name_too_long: 'name_too_long',
  description_too_long: 'description_too_long',
  short_description_too_long: 'short_description_too_long',
  placeholder_too_long: 'placeholder_too_long',
  username_invalid: 'username_invalid',
  username_taken: 'username_taken',
  too_many_bots: 'too_many_bots',
  username_unknown: 'transfer_unknown',
  username_not_person: 'transfer_unknown',
  token_blocked: 'token_blocked',
  transfer_not_found: 'offer_gone',
  transfer_to_self: 'transfer_self',
  recipient_suspended: 'transfer_unknown',
  recipient_too_many_bots: 'transfer_full',
};

export const refusalText = (kind: ErrorName): TextKey => said[kind] ?? 'failed';
