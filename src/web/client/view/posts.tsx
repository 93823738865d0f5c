/** Shows the page of a channel: its posts with their reactions, newest first. */
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { Virtualizer } from 'virtua';
import { get } from '../api.js';
import { reasonOf } from '../failures.js';
import { copyPostLink } from '../links.js';
import { deletionListeners, markRead, messageListeners } from '../model/chats.js';
import { inOneAlbum } from '../model/history.js';
import { posts } from '../model/posts.js';
import { personName, serviceKindOf } from '../names.js';
import type { ChatSummary, Message, Page, Post } from '../types.js';
import { fullDate, t } from '../words.js';
import { Album, type AlbumItem, hasOwnCaptions, type OnOpen } from './album.js';
import { mediumOfPost } from './media.js';
import { PollCard } from './poll.js';
import { ReactionBar } from './reactions.js';
import { RichText } from './text.js';
import { Empty, Face, IconButton, Spinner, Trouble } from './ui.js';

const page = 20;

const itemsOf = (album: readonly Post[]): AlbumItem[] =>
  album.flatMap((post) => {
    const medium = mediumOfPost(post);
    const caption = post.caption ? { text: post.caption, entities: post.entities } : undefined;
    return medium ? [{ id: post.id, medium, caption }] : [];
  });

/** Shows a post, or the posts of an album. An album shows the reactions of its first post. */
export function PostCard({ album, open }: { album: readonly Post[]; open: OnOpen }) {
  const post = album[0] as Post;
  const items = itemsOf(album);
  const worded = album.find(({ text, caption }) => text || caption);
  const words = hasOwnCaptions(items) ? undefined : (worded?.text ?? worded?.caption);
  const text = words && (
    <p className="text" dir="auto">
      <RichText text={words} entities={worded?.entities} />
    </p>
  );
  return (
    <article className="post" aria-label={fullDate(post.date)}>
      <header>
        <Face id={post.chat.id} name={post.chat.title ?? ''} size={40} />
        <span className="grow">
          <strong>
            <bdi>{post.chat.title}</bdi>
          </strong>
          <small>
            {personName(post.author)} · {fullDate(post.date)}
            {album.some(({ edit_date }) => edit_date !== undefined) && ` · ${t('edited')}`}
          </small>
        </span>
        <IconButton icon="link" label={t('copy_link')} onClick={() => void copyPostLink(post)} />
      </header>
      {post.media?.type === 'poll' && (
        <PollCard chat={post.chat.id} message={post.message_id} poll={post.media.poll} />
      )}
      {worded?.show_caption_above_media && text}
      {items.length > 0 && <Album items={items} open={open} />}
      {!worded?.show_caption_above_media && text}
      <ReactionBar post={post} />
    </article>
  );
}

interface PostsPageProps {
  chat: Pick<ChatSummary, 'id' | 'last_message'>;
  open: OnOpen;
}

export function PostsPage({ chat, open }: PostsPageProps) {
  const [list, setList] = useState<Post[]>([]);
  const [state, setState] = useState<'more' | 'all' | 'loading'>('more');
  /** The cursor of the next page. */
  const cursor = useRef('');
  const [failure, setFailure] = useState('');
  const scroller = useRef<HTMLDivElement>(null);
  const busy = useRef(false);

  const load = useCallback(
    async (from: string) => {
      if (busy.current) return;
      busy.current = true;
      setState('loading');
      setFailure('');
      try {
        const at = from === '' ? '' : `&cursor=${from}`;
        const found = await get<Page<Post>>(`/api/chats/${chat.id}/posts?limit=${page}${at}`);
        for (const post of found.items) posts.take(post);
        posts.changed();
        setList((present) => merged(from === '' ? [] : present, found.items));
        cursor.current = found.next_cursor ?? '';
        setState(found.next_cursor === undefined ? 'all' : 'more');
      } catch (error) {
        setFailure(reasonOf(error));
        setState('more');
      }
      busy.current = false;
    },
    [chat.id],
  );

  useEffect(() => void load(''), [load]);
  useEffect(() => {
    const onMessage = async (message: Message) => {
      if (message.chat.id !== chat.id || serviceKindOf(message)) return;
      const path = `/api/chats/${chat.id}/posts?limit=1&before=${message.message_id + 1}`;
      const { items } = await get<Page<Post>>(path);
      for (const post of items) posts.take(post);
      setList((present) => merged(present, items));
    };
    const listener = (message: Message) => void onMessage(message).catch(() => {});
    const onDeletion = (from: number, message: number) => {
      if (from === chat.id) setList((present) => present.filter(({ message_id }) => message_id !== message));
    };
    messageListeners.add(listener);
    deletionListeners.add(onDeletion);
    return () => {
      messageListeners.delete(listener);
      deletionListeners.delete(onDeletion);
    };
  }, [chat.id]);

  const last = chat.last_message?.message_id;
  // biome-ignore lint/correctness/useExhaustiveDependencies: marks a new post as read while the page has the focus
  useEffect(() => {
    if (document.hasFocus()) markRead(chat.id);
  }, [last, chat.id]);

  const albums = useMemo(() => albumsOf(list, state === 'all'), [list, state]);
  const loadNear = () => {
    const box = scroller.current;
    if (box && state === 'more' && box.scrollHeight - box.scrollTop - box.clientHeight < 800)
      void load(cursor.current);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: a page of albums may be too short to scroll
  useEffect(() => {
    if (failure === '' && list.length > 0) loadNear();
  }, [albums]);

  const openAmongAll: OnOpen = (item) => open(item, albums.toReversed().flatMap(itemsOf));

  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a long page is scrolled by the keyboard too
    <section className="posts" ref={scroller} onScroll={loadNear} tabIndex={0} aria-label={t('posts')}>
      <div className="posts-column">
        {state === 'all' && list.length === 0 && <Empty icon="channel" text={t('no_posts')} />}
        <Virtualizer scrollRef={scroller} data={albums}>
          {(album) => <PostCard key={album[0]?.id} album={album} open={openAmongAll} />}
        </Virtualizer>
        {failure && <Trouble text={failure} retry={() => void load(cursor.current)} />}
        {state === 'loading' && (
          <div className="center">
            <Spinner />
          </div>
        )}
      </div>
    </section>
  );
}

/**
 * Groups posts into albums. A post without an album becomes an album of one post. Orders the albums newest first, and
 * the posts of each album oldest first. Unless `isAll` is true, leaves out the oldest album, because the next page may
 * contain more of its posts.
 */
function albumsOf(list: readonly Post[], isAll: boolean): Post[][] {
  const albums: Post[][] = [];
  for (const post of list) {
    const last = albums.at(-1);
    if (last && inOneAlbum(last[0], post)) last.unshift(post);
    else albums.push([post]);
  }
  if (!isAll && albums.at(-1)?.[0]?.media_group_id !== undefined) albums.pop();
  return albums;
}

function merged(present: readonly Post[], found: readonly Post[]): Post[] {
  const byId = new Map([...present, ...found].map((post) => [post.message_id, post]));
  return [...byId.values()].sort((a, b) => b.message_id - a.message_id);
}
