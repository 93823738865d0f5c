/**
 * Shows the reactions under a post: counters to press, an emoji picker, and a list of the people who reacted. The
 * person's own reactions are highlighted.
 */
import { lazy, useEffect, useState } from 'react';
import { heart, posts } from '../model/posts.js';
import { usePages } from '../pages.js';
import { useSignal } from '../signal.js';
import type { Post, User } from '../types.js';
import { fullDate, t } from '../words.js';
import { Icon } from './icons.js';
import { Dialog, Face, Part, Spinner, Trouble } from './ui.js';

const EmojiPanel = lazy(() => import('./emoji.js'));

interface Reactor {
  user_id: string;
  emoji: string;
  date: number;
  user?: User;
}

function Reactors({ post, close }: { post: Post; close: () => void }) {
  const { items, cursor, failure, load } = usePages<Reactor>(`/api/posts/${post.id}/reactions`);
  return (
    <Dialog title={t('who_reacted')} close={close}>
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
              <span className="emoji">{emoji}</span>
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
    </Dialog>
  );
}

export function ReactionBar({ post }: { post: Post }) {
  useSignal(posts);
  const [picking, setPicking] = useState<DOMRect | null>(null);
  const [listing, setListing] = useState(false);
  useEffect(() => posts.follow(post.id), [post.id]);
  const current = posts.byId(post.id) ?? post;
  const hasHeart = current.reactions.some(({ emoji }) => emoji.replaceAll('\ufe0f', '') === heart);
  const counters = hasHeart
    ? current.reactions
    : [{ emoji: heart, count: 0, user_ids: [] }, ...current.reactions];
  const total = current.reactions.reduce((sum, { count }) => sum + count, 0);
  return (
    <div className="reactions">
      {counters.map(({ emoji, count }) => {
        const own = posts.isOwn(post.id, emoji);
        return (
          <button
            key={emoji}
            type="button"
            className={own ? 'reaction own' : 'reaction'}
            aria-pressed={own}
            aria-label={t('reaction', { emoji, n: count })}
            onClick={() => void posts.toggle(post.id, emoji)}
          >
            <span className="emoji" aria-hidden="true">
              {emoji === heart ? '❤️' : emoji}
            </span>
            {count > 0 && <span>{count}</span>}
          </button>
        );
      })}
      <span className="anchor">
        <button
          type="button"
          className="reaction add"
          aria-label={t('add_reaction')}
          title={t('add_reaction')}
          aria-expanded={picking !== null}
          onClick={(event) => setPicking(picking ? null : event.currentTarget.getBoundingClientRect())}
        >
          <Icon name="smile" size={18} />
        </button>
        {picking && (
          <Part>
            <EmojiPanel
              at={picking}
              close={() => setPicking(null)}
              choose={(emoji) => {
                setPicking(null);
                if (!posts.isOwn(post.id, emoji)) void posts.toggle(post.id, emoji);
              }}
            />
          </Part>
        )}
      </span>
      {total > 0 && (
        <button
          type="button"
          className="reaction who"
          aria-label={t('who_reacted')}
          title={t('who_reacted')}
          onClick={() => setListing(true)}
        >
          <Icon name="people" size={18} />
        </button>
      )}
      {listing && <Reactors post={current} close={() => setListing(false)} />}
    </div>
  );
}

/** Shows the reactions of a post under its message in a chat. Shows nothing until the post is loaded. */
export function PostReactions({ chat, message }: { chat: number; message: readonly number[] }) {
  useSignal(posts);
  const post = posts.find(chat, message);
  return post ? <ReactionBar post={post} /> : <div className="reactions" />;
}
