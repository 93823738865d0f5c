/** Shows a row of quick reactions. Its code is loaded when it is first opened. */
import { useEffect, useRef } from 'react';
import { createPortal } from 'react-dom';
import { posts, shown } from '../model/posts.js';
import type { Post } from '../types.js';
import { t } from '../words.js';

const row_px = { width: 266, height: 46 };

/** Shows the emoji with the most reactions in the channel, above the button at the position `at`. */
export function QuickRow({ post, at, close }: { post: Post; at: DOMRect; close: () => void }) {
  const row = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const outside = (event: PointerEvent) => {
      if (!row.current?.contains(event.target as Node)) close();
    };
    addEventListener('pointerdown', outside);
    addEventListener('scroll', close, true);
    return () => {
      removeEventListener('pointerdown', outside);
      removeEventListener('scroll', close, true);
    };
  }, [close]);
  const left = Math.max(8, Math.min(at.left, innerWidth - row_px.width - 8));
  const style = { ...row_px, left, top: Math.max(0, at.top - row_px.height) };
  return createPortal(
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields of a form
    <div className="quick" ref={row} role="group" aria-label={t('add_reaction')} style={style}>
      <div>
        {posts.mostUsed(post.chat.id).map((emoji) => (
          <button
            key={emoji}
            type="button"
            aria-label={emoji}
            aria-pressed={posts.isOwn(post.id, emoji)}
            onClick={() => {
              close();
              void posts.toggle(post.id, emoji);
            }}
          >
            {shown(emoji)}
          </button>
        ))}
      </div>
    </div>,
    document.querySelector('main') ?? document.body,
  );
}
