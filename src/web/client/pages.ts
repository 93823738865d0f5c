/** Loads lists that the service returns page by page. */
import { useCallback, useEffect, useState } from 'react';
import { get } from './api.js';
import { reasonOf } from './failures.js';
import type { Page } from './types.js';

/** Returns a list to which `load` adds pages. `load` without a cursor starts again from the first page. */
export function usePages<T>(path: string, limit = 50) {
  const [items, setItems] = useState<T[] | null>(null);
  const [cursor, setCursor] = useState<string | undefined>();
  const [failure, setFailure] = useState('');
  const load = useCallback(
    async (from?: string) => {
      setFailure('');
      try {
        const sign = path.includes('?') ? '&' : '?';
        const at = from ? `&cursor=${encodeURIComponent(from)}` : '';
        const page = await get<Page<T>>(`${path}${sign}limit=${limit}${at}`);
        setItems((before) => (from && before ? [...before, ...page.items] : page.items));
        setCursor(page.next_cursor);
      } catch (error) {
        setFailure(reasonOf(error));
      }
    },
    [path, limit],
  );
  useEffect(() => void load(), [load]);
  return { items, cursor, failure, load };
}
