/** Searches the guides, methods and endpoints. The index is loaded when the search field gets the focus. */

export interface Entry {
  readonly title: string;
  /** The guide, method or group of endpoints that contains the entry. */
  readonly place: string;
  readonly text: string;
  readonly url: string;
}

const found_max = 12;

/**
 * Returns the entries that contain every word of the query, the best matches first: entries whose title is the query,
 * titles that begin with the query, titles that contain all words, and then all other entries.
 */
export function find(entries: readonly Entry[], query: string): Entry[] {
  const wanted = query.trim().toLowerCase();
  const words = wanted.split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const scored = entries.flatMap((entry) => {
    const title = entry.title.toLowerCase();
    const all = `${title} ${entry.place} ${entry.text}`.toLowerCase();
    if (!words.every((word) => all.includes(word))) return [];
    if (title === wanted) return [{ entry, score: 0 }];
    if (title.startsWith(wanted)) return [{ entry, score: 1 }];
    return [{ entry, score: words.every((word) => title.includes(word)) ? 2 : 3 }];
  });
  return scored
    .sort((a, b) => a.score - b.score)
    .slice(0, found_max)
    .map(({ entry }) => entry);
}

function rowOf({ title, place, text, url }: Entry): HTMLElement {
  const link = document.createElement('a');
  link.href = url;
  for (const [tag, content] of [
    ['strong', title],
    ['span', place],
    ['small', text],
  ] as const) {
    const part = document.createElement(tag);
    part.textContent = content;
    link.append(part);
  }
  const row = document.createElement('li');
  row.append(link);
  return row;
}

export function startSearch(form: HTMLFormElement): void {
  const field = form.querySelector('input') as HTMLInputElement;
  const list = form.querySelector('ul') as HTMLUListElement;
  let entries: Promise<readonly Entry[]> | undefined;
  const load = () => {
    entries ??= fetch('/docs/search.json').then((answer) => answer.json());
    return entries;
  };
  const show = async () => {
    const found = find(await load(), field.value);
    list.replaceChildren(...found.map(rowOf));
    list.hidden = found.length === 0;
  };
  field.addEventListener('focus', () => void load());
  field.addEventListener('input', () => void show());
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    await show();
    list.querySelector('a')?.click();
  });
  form.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') list.hidden = true;
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const stops = [field, ...list.querySelectorAll('a')];
    const at = stops.indexOf(document.activeElement as HTMLInputElement);
    stops[(at + step + stops.length) % stops.length]?.focus();
  });
  document.addEventListener('click', ({ target }) => {
    if (!form.contains(target as Node) || (target as Element).closest('li')) list.hidden = true;
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || (event.target as Element).closest('input, textarea, select')) return;
    event.preventDefault();
    field.focus();
  });
}
