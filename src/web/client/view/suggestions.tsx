/** Suggests bots and public chats to people with few chats. */
import { useEffect, useState } from 'react';
import { get } from '../api.js';
import { chats } from '../model/chats.js';
import { useSignal } from '../signal.js';
import type { Page, Suggestion } from '../types.js';
import { t } from '../words.js';
import { Face } from './ui.js';

export function Suggestions() {
  useSignal(chats);
  const [all, setAll] = useState<readonly Suggestion[]>([]);
  useEffect(() => {
    // If the call fails, suggests nothing. Fronts of an earlier version do not have this endpoint.
    get<Page<Suggestion>>('/api/suggestions').then(
      ({ items }) => setAll(items),
      () => {},
    );
  }, []);
  const left = all.filter(({ id }) => !chats.byId.has(id));
  if (left.length === 0) return null;
  return (
    <section className="suggested" aria-labelledby="suggestions">
      <h2 id="suggestions">{t('suggestions')}</h2>
      {left.map(({ id, type, username, title, about, avatar }) => (
        <a className="suggested-row" key={id} href={`#/to/${username}`}>
          <Face id={id} name={title} picture={avatar} size={40} />
          <span className="grow">
            <strong>
              <bdi>{title}</bdi>
            </strong>
            <small dir="auto">{about ?? t(type)}</small>
          </span>
        </a>
      ))}
    </section>
  );
}
