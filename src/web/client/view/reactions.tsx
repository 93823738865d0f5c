/**
 * Shows the reactions under a post: a counter for each emoji, a row of quick reactions, an emoji picker, and a list of
 * the people who reacted. The person's own reactions are highlighted.
 */
import { lazy, useCallback, useEffect, useRef, useState } from 'react';
import { heart, posts, shown } from '../model/posts.js';
import { useSignal } from '../signal.js';
import type { Post } from '../types.js';
import { t } from '../words.js';
import { Icon } from './icons.js';
import { Part, useLongPress } from './ui.js';

const EmojiPanel = lazy(() => import('./emoji.js'));
const QuickRow = lazy(async () => ({ default: (await import('./quick_row.js')).QuickRow }));
const Reactors = lazy(async () => ({ default: (await import('./reactors.js')).Reactors }));

/**
 * Shows the button that adds a reaction. A press opens the emoji picker. A long press shows the row of quick reactions,
 * and so does a pointer over the button.
 */
function AddReaction({ post }: { post: Post }) {
  const button = useRef<HTMLButtonElement>(null);
  const [picking, setPicking] = useState<DOMRect | null>(null);
  const [quick, setQuick] = useState<DOMRect | null>(null);
  const isHeld = useRef(false);
  const place = () => button.current?.getBoundingClientRect() ?? null;
  const closeQuick = useCallback(() => setQuick(null), []);
  const { onPointerDown, ...press } = useLongPress(() => {
    isHeld.current = true;
    setQuick(place());
  });
  return (
    <span
      className="anchor"
      onPointerEnter={({ pointerType }) => pointerType === 'mouse' && !picking && setQuick(place())}
      onPointerLeave={({ pointerType }) => pointerType === 'mouse' && closeQuick()}
    >
      <button
        ref={button}
        type="button"
        className="reaction add"
        aria-label={t('add_reaction')}
        aria-expanded={picking !== null}
        {...press}
        onPointerDown={(event) => {
          // Prevents a long press from also opening the menu of the message.
          event.stopPropagation();
          isHeld.current = false;
          onPointerDown(event);
        }}
        onContextMenu={(event) => {
          event.preventDefault();
          event.stopPropagation();
        }}
        onClick={() => {
          if (isHeld.current) return;
          closeQuick();
          setPicking(picking ? null : place());
        }}
      >
        <Icon name="smile" size={18} />
      </button>
      {quick && (
        <Part>
          <QuickRow post={post} at={quick} close={closeQuick} />
        </Part>
      )}
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
  );
}

export function ReactionBar({ post }: { post: Post }) {
  useSignal(posts);
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
              {shown(emoji)}
            </span>
            {count > 0 && <span>{count}</span>}
          </button>
        );
      })}
      <AddReaction post={current} />
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
      {listing && (
        <Part>
          <Reactors post={current} total={total} close={() => setListing(false)} />
        </Part>
      )}
    </div>
  );
}

/** Shows the reactions on a post under its message in a chat. Shows nothing until the post is loaded. */
export function PostReactions({ chat, message }: { chat: number; message: readonly number[] }) {
  useSignal(posts);
  const post = posts.find(chat, message);
  return post ? <ReactionBar post={post} /> : <div className="reactions" />;
}
