/**
 * Shows text with entities. Creates only text nodes and a fixed set of elements, so that a text from people never
 * becomes markup.
 */
import { Fragment, type ReactNode, useState } from 'react';
import type { MessageEntity } from '../types.js';
import { t } from '../words.js';
import { CodeBlock } from './code.js';

/**
 * Returns the URL if its scheme is allowed for links, otherwise undefined. A link without an allowed URL is shown as
 * plain text.
 */
export function safeUrl(address: string): string | undefined {
  try {
    const url = new URL(/^[a-z][a-z0-9+.-]*:/i.test(address) ? address : `https://${address}`);
    return ['http:', 'https:', 'mailto:', 'tel:'].includes(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}

function Spoiler({ children }: { children: ReactNode }) {
  const [open, setOpen] = useState(false);
  if (open) return <span>{children}</span>;
  return (
    <button type="button" className="spoiler" aria-label={t('spoiler')} onClick={() => setOpen(true)}>
      <span aria-hidden="true">{children}</span>
    </button>
  );
}

function Link({ to, children }: { to: string; children: ReactNode }) {
  const url = safeUrl(to);
  if (url === undefined) return <>{children}</>;
  return (
    <a href={url} target="_blank" rel="noopener noreferrer nofollow" title={url}>
      {children}
    </a>
  );
}

export type OnCommand = (command: string) => void;

function marked(entity: MessageEntity, raw: string, children: ReactNode, onCommand?: OnCommand): ReactNode {
  switch (entity.type) {
    case 'bold':
      return <strong>{children}</strong>;
    case 'italic':
      return <em>{children}</em>;
    case 'underline':
      return <u>{children}</u>;
    case 'strikethrough':
      return <s>{children}</s>;
    case 'spoiler':
      return <Spoiler>{children}</Spoiler>;
    case 'code':
      return <code>{children}</code>;
    case 'pre':
      return <CodeBlock language={entity.language} code={raw} />;
    case 'blockquote':
    case 'expandable_blockquote':
      return <blockquote>{children}</blockquote>;
    case 'text_link':
      return <Link to={entity.url ?? ''}>{children}</Link>;
    case 'url':
      return <Link to={raw}>{children}</Link>;
    case 'email':
      return <Link to={`mailto:${raw}`}>{children}</Link>;
    case 'mention':
      return <a href={`#/to/${encodeURIComponent(raw.slice(1))}`}>{children}</a>;
    case 'text_mention':
      return <span className="mention">{children}</span>;
    case 'bot_command':
      return onCommand ? (
        <button type="button" className="command" onClick={() => onCommand(raw)}>
          {children}
        </button>
      ) : (
        <span className="mention">{children}</span>
      );
    case 'hashtag':
    case 'cashtag':
      return <span className="mention">{children}</span>;
    default:
      return children;
  }
}

const blocks = new Set(['pre', 'blockquote', 'expandable_blockquote']);

/**
 * Draws the text between `from` and `to`, with the entities in this range. If an entity begins inside another entity
 * but ends after it, the inner entity is cut off where the outer entity ends.
 */
function draw(
  text: string,
  entities: readonly MessageEntity[],
  from: number,
  to: number,
  onCommand?: OnCommand,
): ReactNode[] {
  const out: ReactNode[] = [];
  let at = from;
  let afterBlock = false;
  /** Leaves out a line break that follows a block, because the block itself ends the line. */
  const plain = (start: number, end: number) =>
    text.slice(afterBlock && text[start] === '\n' ? start + 1 : start, end);
  for (let i = 0; i < entities.length; i++) {
    const entity = entities[i] as MessageEntity;
    const start = Math.max(entity.offset, at);
    const end = Math.min(entity.offset + entity.length, to);
    if (end <= start || start >= to) continue;
    if (start > at) out.push(plain(at, start));
    const inner: MessageEntity[] = [];
    for (const other of entities.slice(i + 1)) if (other.offset < end) inner.push(other);
    const children = inner.length > 0 ? draw(text, inner, start, end, onCommand) : text.slice(start, end);
    out.push(
      <Fragment key={`${start}${entity.type}`}>
        {marked(entity, text.slice(start, end), children, onCommand)}
      </Fragment>,
    );
    at = end;
    afterBlock = blocks.has(entity.type);
  }
  if (at < to) out.push(plain(at, to));
  return out;
}

interface RichTextProps {
  text: string;
  entities?: readonly MessageEntity[];
  onCommand?: OnCommand;
}

export function RichText({ text, entities, onCommand }: RichTextProps) {
  if (!entities?.length) return <>{text}</>;
  const ordered = [...entities].sort((a, b) => a.offset - b.offset || b.length - a.length);
  return <>{draw(text, ordered, 0, text.length, onCommand)}</>;
}
