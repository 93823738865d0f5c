/** Defines a point on the map. A live location moves until its period ends or the bot stops it. */
import { z } from 'zod';
import { ruleLimits as limits } from '../rules/limits.js';
import type { ContentObject } from '../store/core/codec.js';
import type { ObjectKind } from './kind.js';

export interface Location extends ContentObject {
  readonly type: 'location';
  /** In degrees. */
  readonly latitude: number;
  readonly longitude: number;
  readonly horizontal_accuracy?: number;
  readonly heading?: number;
  readonly proximity_alert_radius?: number;
}

export const locationFields = z
  .strictObject({
    latitude: z.number().min(-90).max(90),
    longitude: z.number().min(-180).max(180),
    horizontal_accuracy: z.number().min(0).max(1500).optional().describe('Radius of uncertainty in metres'),
    live_period: z
      .int()
      .positive()
      .optional()
      .describe(
        `Seconds after the date of the message. Present while the location is live; ${limits.live_period_s_forever} without an end`,
      ),
    heading: z
      .int()
      .min(1)
      .max(limits.live_heading_max)
      .optional()
      .describe('Direction of movement in degrees. Present only while the location is live'),
    proximity_alert_radius: z
      .int()
      .min(1)
      .max(limits.live_alert_radius_m_max)
      .optional()
      .describe('Metres. Stored and shown, but without effect. Present only while the location is live'),
    live_until: z
      .int()
      .min(0)
      .optional()
      .describe(
        'Unix time in seconds until which a live location moves; 0 if its bot stopped it. Only in the application API',
      ),
  })
  .meta({ id: 'Location', description: 'A point on the map, in degrees.' });

/** Returns the point without the fields of a live location. */
const placeOf = ({ heading: _, proximity_alert_radius: __, live: ___, ...place }: Location): Location =>
  place;

export const location: ObjectKind<Location> = {
  sign: '📍',
  fields: { location: locationFields.optional() },
  view: ({ type: _, live, ...moving }, forPeople, time) => {
    if (live === undefined) return { location: moving };
    const [live_period, end] = live;
    const { type: __, ...place } = placeOf({ type: 'location', ...moving });
    const shown = end > time.nowSeconds() ? { ...moving, live_period } : place;
    return { location: forPeople ? { ...shown, live_until: end } : shown };
  },
  title: () => '',
  copied: placeOf,
  forwarded: placeOf,
};
