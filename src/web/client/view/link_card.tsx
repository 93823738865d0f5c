/**
 * Shows the preview of a link. The card has the same size before and after the service answers, so that no message
 * moves.
 */
import { useEffect, useRef, useState } from 'react';
import { askPreview, knownPreview, linkOf } from '../model/link_previews.js';
import type { Message } from '../types.js';

function Card({ message, url }: { message: Message; url: string }) {
  const card = useRef<HTMLAnchorElement>(null);
  const [preview, setPreview] = useState(() => knownPreview(url, message));
  // If the service later finds no preview, the card keeps its space, so that no message moves. The card disappears only
  // when the message is drawn anew.
  const [isAbsent] = useState(preview === null);
  useEffect(() => {
    if (!card.current || preview !== undefined) return undefined;
    let stop = () => {};
    const observer = new IntersectionObserver(([entry]) => {
      stop();
      stop = entry?.isIntersecting ? askPreview(url, message, setPreview) : () => {};
    });
    observer.observe(card.current);
    return () => {
      observer.disconnect();
      stop();
    };
  }, [url, message, preview]);
  if (isAbsent) return null;
  const { host, pathname, href } = new URL(url);
  const site = preview?.site_name;
  return (
    <a ref={card} className="quote link-card" href={href} target="_blank" rel="noopener noreferrer nofollow">
      <span>
        {/*
          This is the host that the link opens, even if the service was redirected to another host. The host comes
          first, so that a long name of the site cannot hide it.
        */}
        <bdi>{host}</bdi>
        {site && (
          <>
            {' · '}
            <bdi>{site}</bdi>
          </>
        )}
      </span>
      <strong dir="auto">{preview?.title ?? pathname.replace(/^\/$/, '')}</strong>
      {preview?.description && <span dir="auto">{preview.description}</span>}
    </a>
  );
}

/** Shows the preview of the first link in a message. Shows nothing if the link has no preview. */
export function LinkCard({ message }: { message: Message }) {
  const url = linkOf(message);
  return url === undefined ? null : <Card key={url} url={url} message={message} />;
}
