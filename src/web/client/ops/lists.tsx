/**
 * Loads lists page by page. Each page replaces the previous page, so that a long list does not fill the browser's
 * memory.
 */
import { useCallback, useEffect, useRef, useState } from 'react';
import { call, reasonOf } from './api.js';

interface Answer<T> {
  items: readonly T[];
  next_cursor?: string;
}

export interface Pages<T> {
  /** The items of the current page, or null while it is loading. */
  readonly items: readonly T[] | null;
  readonly failure: string;
  /** Whether the current page is the first one. */
  readonly isFirst: boolean;
  readonly toFirst: (() => void) | undefined;
  readonly toNext: (() => void) | undefined;
  readonly load: () => Promise<void>;
}

/** Loads the first page of a list, and other pages on request. `path` is the path of the call with its query. */
export function usePages<T>(path: string): Pages<T> {
  const [at, setAt] = useState({ path, cursor: '' });
  const cursor = at.path === path ? at.cursor : '';
  const address = `${path}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`;
  const [found, setFound] = useState<{ of: string; answer: Answer<T> | null; failure: string } | null>(null);
  const latest = useRef(address);
  latest.current = address;
  const load = useCallback(async () => {
    let next = { of: address, answer: null as Answer<T> | null, failure: '' };
    try {
      next = { ...next, answer: await call<Answer<T>>(address) };
    } catch (error) {
      next = { ...next, failure: reasonOf(error) };
    }
    // Ignores the answer if another page has been requested after this one.
    if (latest.current !== address) return;
    setFound((before) =>
      next.answer === null && before?.of === address ? { ...before, failure: next.failure } : next,
    );
  }, [address]);
  useEffect(() => void load(), [load]);
  const shown = found?.of === address ? found : null;
  const after = shown?.answer?.next_cursor;
  return {
    items: shown?.answer?.items ?? null,
    failure: shown?.failure ?? '',
    isFirst: cursor === '',
    toFirst: cursor === '' ? undefined : () => setAt({ path, cursor: '' }),
    toNext: after === undefined ? undefined : () => setAt({ path, cursor: after }),
    load,
  };
}

/** Shows the buttons that go to another page of a list, unless there is only one page. */
export function Pager<T>({ of, pages, next }: { of: string; pages: Pages<T>; next: string }) {
  const { toFirst, toNext, isFirst } = pages;
  if (isFirst && toNext === undefined) return null;
  return (
    <nav className="row wrap" aria-label={`Pages of ${of}`}>
      <button type="button" className="button small" disabled={toFirst === undefined} onClick={toFirst}>
        First page
      </button>
      <button type="button" className="button small" disabled={toNext === undefined} onClick={toNext}>
        {next}
      </button>
    </nav>
  );
}
