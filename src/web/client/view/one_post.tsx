/** Shows the post to which a link leads, also for people who have not joined its public channel. */
import { lazy, useEffect, useState } from 'react';
import { ApiFailure, get } from '../api.js';
import { reasonOf } from '../failures.js';
import { posts } from '../model/posts.js';
import type { Post } from '../types.js';
import { t } from '../words.js';
import type { AlbumItem } from './album.js';
import { Icon } from './icons.js';
import { PostCard } from './posts.js';
import { Face, Part, Spinner, Trouble } from './ui.js';

const Viewer = lazy(() => import('./viewer.js'));

function Content({ post }: { post: Post }) {
  const [opened, setOpened] = useState<AlbumItem | null>(null);
  return (
    <>
      <section className="posts" aria-label={t('posts')}>
        <div className="posts-column">
          <PostCard album={[post]} open={(item) => setOpened(item)} />
          <a className="button" href={`#/chat/${post.chat.id}/${post.message_id}`}>
            {t('open_channel')}
          </a>
        </div>
      </section>
      {opened && (
        <Part>
          <Viewer items={[opened]} first={opened} close={() => setOpened(null)} />
        </Part>
      )}
    </>
  );
}

export function OnePost({ id }: { id: string }) {
  const [post, setPost] = useState<Post | null>(null);
  const [failure, setFailure] = useState('');
  const [isMissing, setMissing] = useState(false);
  const load = () => {
    setFailure('');
    get<Post>(`/api/posts/${encodeURIComponent(id)}`).then(
      (found) => {
        setPost(posts.take(found));
        posts.changed();
      },
      (error) => {
        if (error instanceof ApiFailure && error.status === 404) setMissing(true);
        else setFailure(reasonOf(error));
      },
    );
  };
  useEffect(load, [id]);
  const title = post?.chat.title ?? '';
  return (
    <main className="main">
      <header className="bar chat-bar">
        <a className="icon-button only-narrow" href="#/" aria-label={t('back')}>
          <Icon name="back" />
        </a>
        {post && (
          <a className="chat-title" href={`#/chat/${post.chat.id}/${post.message_id}`}>
            <Face id={post.chat.id} name={title} size={42} />
            <span>
              <strong>
                <bdi>{title}</bdi>
              </strong>
              <small>{t('channel')}</small>
            </span>
          </a>
        )}
      </header>
      {post && <Content post={post} />}
      {!post && (
        <div className="center grow">
          {isMissing && <p className="card">{t('post_missing')}</p>}
          {failure && <Trouble text={failure} retry={load} />}
          {!isMissing && !failure && <Spinner />}
        </div>
      )}
    </main>
  );
}
