/** Lists the people who reacted to a post, with a tab for each emoji. */
import { useState } from 'react';
import { shown } from '../model/posts.js';
import { usePages } from '../pages.js';
import type { Post, User } from '../types.js';
import { fullDate, t } from '../words.js';
import { Dialog, Face, Spinner, Trouble } from './ui.js';

interface Reactor {
  user_id: string;
  emoji: string;
  date: number;
  user?: User;
}

/** Lists the people who reacted to a post with the chosen emoji, or with any emoji if none is chosen (''). */
function ReactorList({ post, emoji: chosen }: { post: Post; emoji: string }) {
  const only = chosen === '' ? '' : `?emoji=${encodeURIComponent(chosen)}`;
  const { items, cursor, failure, load } = usePages<Reactor>(`/api/posts/${post.id}/reactions${only}`);
  return (
    <>
      <ul className="people">
        {items?.map(({ user, user_id, emoji, date }) => {
          const name = user ? [user.first_name, user.last_name].filter(Boolean).join(' ') : user_id;
          return (
            <li key={`${user_id}${emoji}`}>
              <Face id={user?.id ?? 0} name={name} size={36} />
              <span className="grow">
                <bdi>{name}</bdi>
                <small>{fullDate(date)}</small>
              </span>
              <span className="emoji">{shown(emoji)}</span>
            </li>
          );
        })}
      </ul>
      {failure && <Trouble text={failure} retry={() => void load(cursor)} />}
      {!items && !failure && <Spinner />}
      {items?.length === 0 && <p className="muted">{t('nobody_reacted')}</p>}
      {cursor && (
        <button type="button" className="button" onClick={() => void load(cursor)}>
          {t('more')}
        </button>
      )}
    </>
  );
}

export function Reactors({ post, total, close }: { post: Post; total: number; close: () => void }) {
  const [chosen, choose] = useState('');
  const all = { emoji: '', count: total };
  return (
    <Dialog title={t('who_reacted')} close={close}>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields of a form */}
      <div className="tabs reactor-tabs" role="group" aria-label={t('who_reacted')}>
        {[all, ...post.reactions].map(({ emoji, count }) => (
          <button
            key={emoji}
            type="button"
            aria-pressed={emoji === chosen}
            aria-label={t('reaction', { emoji: emoji === '' ? t('all_reactions') : emoji, n: count })}
            onClick={() => choose(emoji)}
          >
            {emoji === '' ? t('all_reactions') : <span className="emoji">{shown(emoji)}</span>} {count}
          </button>
        ))}
      </div>
      <ReactorList key={chosen} post={post} emoji={chosen} />
    </Dialog>
  );
}
