/**
 * Shows locations, venues, contacts and dice in messages. All but dice are cards that open the map or the phone.
 * `poll.tsx` shows polls.
 */

import type { Message, ObjectKind } from '../types.js';
import { t } from '../words.js';
import { Icon } from './icons.js';

interface Card {
  kind: ObjectKind;
  title: string;
  detail: string;
  /** The link of the card. Absent for dice and polls. */
  href?: string;
}

const degrees = (value: number) => value.toFixed(5);

const mapOf = ({ latitude, longitude }: { latitude: number; longitude: number }) =>
  `https://www.openstreetmap.org/?mlat=${latitude}&mlon=${longitude}#map=16/${latitude}/${longitude}`;

/** Returns the card of an object in a message, or undefined if the message has none. */
export function objectOf({ venue, location, contact, dice, poll }: Message): Card | undefined {
  if (dice) return { kind: 'dice', title: `${dice.emoji} ${dice.value}`, detail: '' };
  if (poll) return { kind: 'poll', title: poll.question, detail: '' };
  if (venue) return { kind: 'venue', title: venue.title, detail: venue.address, href: mapOf(venue.location) };
  if (location) {
    const detail = `${degrees(location.latitude)}, ${degrees(location.longitude)}`;
    return { kind: 'location', title: t('media_location'), detail, href: mapOf(location) };
  }
  if (!contact) return undefined;
  const { phone_number, first_name, last_name } = contact;
  return {
    kind: 'contact',
    title: [first_name, last_name].filter(Boolean).join(' '),
    detail: phone_number,
    href: `tel:${phone_number.replace(/[^+\d]/g, '')}`,
  };
}

export function ObjectCard({ card: { kind, title, detail, href } }: { card: Card }) {
  if (href === undefined)
    return (
      <span className="dice" role="img" aria-label={title}>
        {title}
      </span>
    );
  return (
    <a className="file" href={href} target="_blank" rel="noopener noreferrer nofollow">
      <span className="file-icon">
        <Icon name={kind === 'contact' ? 'people' : 'map'} />
      </span>
      <span className="file-text">
        <strong dir="auto">{title}</strong>
        <small dir="auto">{detail}</small>
      </span>
    </a>
  );
}
