/**
 * Asks the service for the previews of the links that are in view, a few at a time. Remembers the answers until the
 * page is closed.
 */
import { ApiFailure, get } from '../api.js';
import type { LinkPreview, Message, ShownLinkPreview } from '../types.js';

/**
 * The preview of each requested link, keyed by message and link. Null if the link has no preview. The key contains the
 * message, because the service may choose a different link of the message than `linkOf` does.
 */
const kept = new Map<string, LinkPreview | null>();
const kept_max = 1_000;
const at_once = 2;

/** Whether the operator has turned link previews off. */
let isOff = false;
let running = 0;
const waiting: Array<() => Promise<void>> = [];

/** Returns the URL of the page whose preview a message shows, or undefined if the message shows no preview. */
export function linkOf({ text, entities = [], link_preview_options: options }: Message): string | undefined {
  if (!text || options?.is_disabled) return undefined;
  const links = entities.map(({ type, url, offset, length }) =>
    type === 'url' ? text.slice(offset, offset + length) : type === 'text_link' ? url : undefined,
  );
  for (const link of options?.url ? [options.url] : links) {
    if (!link) continue;
    const page = /^[a-z][a-z0-9+.-]*:/i.test(link) ? link : `https://${link}`;
    if (/^https?:/i.test(page) && URL.canParse(page) && new URL(page).origin !== location.origin) return page;
  }
  return undefined;
}

const keyOf = (url: string, { chat, message_id }: Message): string => `${chat.id} ${message_id} ${url}`;

/** Returns the URL that the service loads for a link. */
function pageOf(link: string): string {
  const url = new URL(link);
  if (url.port === '') url.protocol = 'https:';
  url.hash = '';
  return url.href;
}

export const knownPreview = (url: string, message: Message): LinkPreview | null | undefined =>
  isOff ? null : kept.get(keyOf(url, message));

function next(): void {
  const work = running < at_once ? waiting.shift() : undefined;
  if (!work) return;
  running++;
  void work().finally(() => {
    running--;
    next();
  });
}

async function load(url: string, message: Message): Promise<void> {
  if (knownPreview(url, message) !== undefined) return;
  try {
    const path = `/api/chats/${message.chat.id}/messages/${message.message_id}/link_preview`;
    const { preview = null } = await get<ShownLinkPreview>(path);
    const [oldest] = kept.keys();
    if (oldest !== undefined && kept.size >= kept_max) kept.delete(oldest);
    // Drops a preview of another page. Otherwise the link would show the title of a page that it does not open.
    kept.set(keyOf(url, message), preview?.url === pageOf(url) ? preview : null);
  } catch (error) {
    // If the error says that link previews are turned off, requests no more previews. After any other error, the
    // preview is requested again when the link is drawn again.
    if (error instanceof ApiFailure && error.message.includes('previews are off')) isOff = true;
  }
}

/** Calls `done` when the preview of the link is known. Returns a function that cancels this. */
export function askPreview(url: string, message: Message, done: (preview: LinkPreview) => void): () => void {
  let here = true;
  const work = async () => {
    await load(url, message);
    const preview = knownPreview(url, message);
    if (here && preview) done(preview);
  };
  waiting.push(work);
  next();
  return () => {
    here = false;
    const at = waiting.indexOf(work);
    if (at >= 0) waiting.splice(at, 1);
  };
}
