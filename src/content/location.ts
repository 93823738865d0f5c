/** Defines the content of a point on the map. */
import { z } from 'zod';
import type { ContentObject } from '../store/core/codec.js';
import type { ObjectKind } from './kind.js';

export interface Location extends ContentObject {
  readonly type: 'location';
  /** In degrees. */
  readonly latitude: number;
  readonly longitude: number;
  readonly horizontal_accuracy?: number;
}

export const locationFields = z
  .strictObject({
    latitude: z.number().min(-90).max(90),
    longitude: z.number().min(-180).max(180),
    horizontal_accuracy: z.number().min(0).max(1500).optional().describe('Radius of uncertainty in metres'),
  })
  .meta({ id: 'Location', description: 'A point on the map, in degrees.' });

export const location: ObjectKind<Location> = {
  sign: '📍',
  fields: { location: locationFields.optional() },
  view: ({ type: _, ...shown }) => ({ location: shown }),
  title: () => '',
};
