/** Reads from the URL which part of the operators' page is shown: the overview, a bot or a person. */
import { useEffect, useState } from 'react';

export interface Place {
  readonly kind: 'overview' | 'bots' | 'people';
  readonly id: number;
}

export const placeOfBot = (id: number): string => `#bots/${id}`;
export const placeOfPerson = (id: number): string => `#people/${id}`;
/** The address of the overview. */
export const overviewPlace = '#overview';

/** Returns the part that an address names. For an unknown address, returns the overview. */
export function placeOf(hash: string): Place {
  const [, kind, id] = /^#(bots|people)\/(\d{1,13})$/.exec(hash) ?? [];
  return kind === undefined ? { kind: 'overview', id: 0 } : { kind: kind as Place['kind'], id: Number(id) };
}

export function usePlace(): Place {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const follow = () => {
      setHash(location.hash);
      scrollTo(0, 0);
    };
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  return placeOf(hash);
}
