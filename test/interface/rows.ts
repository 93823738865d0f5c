/** All interface tests of the tables in interface §§2-4 and 6-8. */
import { deliveryRows } from './deliveries.rows.js';
import { fieldRows } from './fields.rows.js';
import { forwardingRows } from './forwarding.rows.js';
import { methodRows } from './methods.rows.js';
import { ownershipRows } from './ownership.rows.js';
import { pictureRows } from './pictures.rows.js';
import { pinRows } from './pins.rows.js';
import { reactionRows } from './reactions.rows.js';
import { refusalRows } from './refusals.rows.js';
import type { Row } from './row.js';
import { tokenRows } from './tokens.rows.js';
import { webhookRows } from './webhooks.rows.js';

export const rows: readonly Row[] = [
  ...[...fieldRows, ...reactionRows, ...pinRows, ...tokenRows, ...ownershipRows, ...pictureRows],
  ...[...methodRows, ...forwardingRows, ...refusalRows, ...webhookRows, ...deliveryRows],
];
