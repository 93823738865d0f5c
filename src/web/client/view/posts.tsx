/** The page of a channel: its posts, newest first, each with its reactions. */
import { useCallback, useEffect, useRef, useState } from 'react';
import { Virtualizer } from 'virtua';
import { get } from '../api.js';
import { reasonOf } from '../failures.js';
import { heard, markRead } from '../model/chats.js';
import { posts } from '../model/posts.js';
import { personName } from '../names.js';
import type { ChatSummary, Message, Post } from '../types.js';
import { fullDate, t } from '../words.js';
import { Media, mediumOfPost } from './media.js';
import { ReactionBar } from './reactions.js';
import { RichText } from './text.js';
import { Empty, Face, Spinner, Trouble } from './ui.js';

const page = 20;

function PostCard({ post, open }: { post: Post; open: (url: string) => void }) {
  const medium = mediumOfPost(post);
  const words = post.text ?? post.caption;
  return (
    <article className="post" aria-label={fullDate(post.date)}>
      <header>
        <Face id={post.chat.id} name={post.chat.title ?? ''} size={40} />
        <span>
          <strong>
            <bdi>{post.chat.title}</bdi>
          </strong>
          <small>
            {personName(post.author)} · {fullDate(post.date)}
            {post.edit_date !== undefined && ` · ${t('edited')}`}
          </small>
        </span>
      </header>
      {medium && (
        <div className="media">
          <Media medium={medium} alt={words ?? t('media_photo')} open={open} />
        </div>
      )}
      {words && (
        <p className="text" dir="auto">
          <RichText text={words} entities={post.entities} />
        </p>
      )}
      <ReactionBar post={post} />
    </article>
  );
}

export function PostsPage({ chat, open }: { chat: ChatSummary; open: (url: string) => void }) {
  const [list, setList] = useState<Post[]>([]);
  const [state, setState] = useState<'more' | 'all' | 'loading'>('more');
  const [failure, setFailure] = useState('');
  const scroller = useRef<HTMLDivElement>(null);
  const busy = useRef(false);
  const oldest = list.at(-1)?.message_id ?? 0;

  const load = useCallback(
    async (before: number) => {
      if (busy.current) return;
      busy.current = true;
      setState('loading');
      setFailure('');
      try {
        const from = before > 0 ? `&before=${before}` : '';
        const found = await get<Post[]>(`/api/chats/${chat.id}/posts?limit=${page}${from}`);
        for (const post of found) posts.take(post);
        posts.changed();
        setList((present) => merged(before > 0 ? present : [], found));
        setState(found.length < page ? 'all' : 'more');
      } catch (error) {
        setFailure(reasonOf(error));
        setState('more');
      }
      busy.current = false;
    },
    [chat.id],
  );

  useEffect(() => void load(0), [load]);
  useEffect(() => {
    const onHeard = async (event: string, message: Message) => {
      if (message.chat?.id !== chat.id || message.pinned_message) return;
      if (event !== 'message' && event !== 'edited_message') return;
      const found = await get<Post[]>(`/api/chats/${chat.id}/posts?limit=1&before=${message.message_id + 1}`);
      for (const post of found) posts.take(post);
      setList((present) => merged(present, found));
    };
    const listener = (event: string, message: Message) => void onHeard(event, message).catch(() => {});
    heard.add(listener);
    return () => void heard.delete(listener);
  }, [chat.id]);

  const last = chat.last_message?.message_id;
  // biome-ignore lint/correctness/useExhaustiveDependencies: who looks at the page has read what is on it
  useEffect(() => {
    if (document.hasFocus()) markRead(chat.id);
  }, [last, chat.id]);

  const onScroll = () => {
    const box = scroller.current;
    if (box && state === 'more' && box.scrollHeight - box.scrollTop - box.clientHeight < 800)
      void load(oldest);
  };

  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a long page is scrolled by the keyboard too
    <section className="posts" ref={scroller} onScroll={onScroll} tabIndex={0} aria-label={t('posts')}>
      <div className="posts-column">
        {state === 'all' && list.length === 0 && <Empty icon="channel" text={t('no_posts')} />}
        <Virtualizer scrollRef={scroller} data={list}>
          {(post) => <PostCard key={post.id} post={post} open={open} />}
        </Virtualizer>
        {failure && <Trouble text={failure} retry={() => void load(oldest)} />}
        {state === 'loading' && (
          <div className="center">
            <Spinner />
          </div>
        )}
      </div>
    </section>
  );
}

function merged(present: readonly Post[], found: readonly Post[]): Post[] {
  const byId = new Map([...present, ...found].map((post) => [post.message_id, post]));
  return [...byId.values()].sort((a, b) => b.message_id - a.message_id);
}
