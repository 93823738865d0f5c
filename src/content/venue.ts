/**
 * Defines a place with a name and an address. The Message also contains its location alone, for clients that do not
 * support venues.
 */
import { z } from 'zod';
import type { ContentObject } from '../store/core/codec.js';
import type { ObjectKind } from './kind.js';
import { locationFields } from './location.js';

export const providerIds = [
  'foursquare_id',
  'foursquare_type',
  'google_place_id',
  'google_place_type',
] as const;

export interface Venue extends ContentObject {
  readonly type: 'venue';
  /** In degrees. */
  readonly latitude: number;
  readonly longitude: number;
  readonly title: string;
  readonly address: string;
  readonly ids: { readonly [K in (typeof providerIds)[number]]?: string };
}

const venueFields = z
  .strictObject({
    location: locationFields,
    title: z.string(),
    address: z.string(),
    ...Object.fromEntries(providerIds.map((name) => [name, z.string().optional()])),
  })
  .meta({ id: 'Venue', description: 'A place with a name and an address.' });

export const venue: ObjectKind<Venue> = {
  sign: '📍',
  fields: { venue: venueFields.optional() },
  view: ({ latitude, longitude, title, address, ids }) => {
    const at = { latitude, longitude };
    return { location: at, venue: { location: at, title, address, ...ids } };
  },
  title: ({ title }) => title,
};
