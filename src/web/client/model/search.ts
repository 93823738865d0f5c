/** Searches messages while a person types a query, and loads further pages of the results. */
import { useEffect, useState } from 'react';
import { call } from '../api.js';
import { reasonOf } from '../failures.js';
import type { Message, Page } from '../types.js';

export interface Found {
  readonly messages: readonly Message[];
  readonly isLoading: boolean;
  readonly failed: string;
  /** Loads more messages. Undefined if there are none. */
  readonly more: (() => void) | undefined;
}

const type_ms = 300;
const page = 20;
/**
 * The maximum number of pages that are loaded until one of them has messages, because a page of results can be empty.
 * After that, the person decides whether to load more.
 */
const empty_pages_max = 20;
/** The size of the longest query that the service accepts, in bytes and in words. */
const bytes_max = 256;
const words_max = 8;

const isAccepted = (query: string): boolean =>
  query !== '' &&
  query.split(/\s+/u).length <= words_max &&
  new TextEncoder().encode(query).length <= bytes_max;

const none = { messages: [] as readonly Message[], cursor: undefined as string | undefined };

/** Returns the messages that match a query, in one chat or, if `chat` is absent, in all chats. */
export function useFound(text: string, chat?: number): Found {
  const query = text.trim();
  const [found, setFound] = useState(none);
  const [failed, setFailed] = useState('');
  const [isLoading, setLoading] = useState(false);
  const [asked, setAsked] = useState<{ cursor?: string | undefined; n: number }>({ n: 0 });
  const path = chat === undefined ? '/api/search/messages' : `/api/chats/${chat}/search`;

  useEffect(() => {
    setFound(none);
    setFailed('');
    setLoading(false);
    if (!isAccepted(query)) return;
    setLoading(true);
    const timer = setTimeout(() => setAsked(({ n }) => ({ n: n + 1 })), type_ms);
    return () => clearTimeout(timer);
  }, [query]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: searches again only when `asked.n` changes
  useEffect(() => {
    if (asked.n === 0 || !isAccepted(query)) return;
    const stop = new AbortController();
    const load = async () => {
      let { cursor } = asked;
      for (let pages = 0; pages < empty_pages_max; pages++) {
        const at = cursor === undefined ? '' : `&cursor=${cursor}`;
        const url = `${path}?query=${encodeURIComponent(query)}&limit=${page}${at}`;
        const { items, next_cursor } = await call<Page<Message>>('GET', url, undefined, {
          signal: stop.signal,
        });
        cursor = next_cursor;
        if (items.length > 0 || cursor === undefined) return { items, cursor };
      }
      return { items: [], cursor };
    };
    setLoading(true);
    setFailed('');
    load()
      .then(({ items, cursor }) =>
        setFound((before) => ({ messages: [...before.messages, ...items], cursor })),
      )
      .catch((error: unknown) => {
        if (!stop.signal.aborted) setFailed(reasonOf(error));
      })
      .finally(() => {
        if (!stop.signal.aborted) setLoading(false);
      });
    return () => stop.abort();
  }, [asked.n]);

  const { messages, cursor } = found;
  const isMore = cursor !== undefined && !isLoading;
  const more = isMore ? () => setAsked(({ n }) => ({ cursor, n: n + 1 })) : undefined;
  return { messages, isLoading, failed, more };
}
