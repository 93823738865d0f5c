/**
 * Shows locations, venues, contacts and dice in messages. Locations, venues and contacts are shown as cards that open a
 * map or a phone number. `poll.tsx` shows polls.
 */

import { useEffect, useState } from 'react';
import type { Location, Message, ObjectKind } from '../types.js';
import { fullDate, t, timeText } from '../words.js';
import { Icon } from './icons.js';

interface Card {
  kind: ObjectKind;
  title: string;
  detail: string;
  /** The map or phone number that the card opens. Absent if the card shows dice or a poll. */
  href?: string;
  /** Present if the location is or was live. */
  live?: Location;
}

const degrees = (value: number) => value.toFixed(5);

const mapOf = ({ latitude, longitude }: { latitude: number; longitude: number }) =>
  `https://www.openstreetmap.org/?mlat=${latitude}&mlon=${longitude}#map=16/${latitude}/${longitude}`;

const liveOf = (location: Location) => (location.live_until === undefined ? {} : { live: location });

/** Returns the card for a message's location, venue, contact, dice or poll. Returns undefined for any other message. */
export function objectOf({ venue, location, contact, dice, poll }: Message): Card | undefined {
  if (dice) return { kind: 'dice', title: `${dice.emoji} ${dice.value}`, detail: '' };
  if (poll) return { kind: 'poll', title: poll.question, detail: '' };
  if (venue) return { kind: 'venue', title: venue.title, detail: venue.address, href: mapOf(venue.location) };
  if (location) {
    const detail = `${degrees(location.latitude)}, ${degrees(location.longitude)}`;
    return {
      kind: 'location',
      title: t('media_location'),
      detail,
      href: mapOf(location),
      ...liveOf(location),
    };
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

const day_ms = 86_400_000;
const forever_s = 0x7fff_ffff;

/** Returns whether the location is still live, and redraws the component when the location is no longer live. */
function useIsLive(until: number): boolean {
  const [, setEnded] = useState(0);
  const left = until * 1000 - Date.now();
  useEffect(() => {
    if (left <= 0) return undefined;
    // The timeout is at most a day, because a longer timeout could overflow.
    const timer = setTimeout(() => setEnded(Date.now()), Math.min(left, day_ms));
    return () => clearTimeout(timer);
  }, [left]);
  return left > 0;
}

/**
 * Shows the position of a live location, and the time until which it is live. The position moves with each edit of the
 * message.
 */
function LiveCard({ live, detail, href }: { live: Location; detail: string; href: string | undefined }) {
  const until = live.live_until ?? 0;
  const isLive = useIsLive(until);
  const time = until * 1000 - Date.now() < day_ms ? timeText(until) : fullDate(until);
  return (
    <a className="file" href={href} target="_blank" rel="noopener noreferrer nofollow">
      <span className={isLive ? 'file-icon live' : 'file-icon ended'}>
        <Icon name="map" />
      </span>
      <span className="file-text">
        <strong dir="auto">{t(isLive ? 'live_location' : 'live_ended')}</strong>
        <small dir="auto">{detail}</small>
        {isLive && live.live_period !== forever_s && <small>{t('live_until', { date: time })}</small>}
      </span>
    </a>
  );
}

export function ObjectCard({ card: { kind, title, detail, href, live } }: { card: Card }) {
  if (live) return <LiveCard live={live} detail={detail} href={href} />;
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
