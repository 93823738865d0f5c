/** Holds short notes at the bottom of the window, and alerts that stay until the person closes them. */
import { Cell } from './signal.js';

export interface Note {
  readonly id: number;
  readonly text: string;
  readonly kind: 'note' | 'alert';
  /** A URL that the person can open from the note. */
  readonly url?: string;
}

export const notes = new Cell<readonly Note[]>([]);
let count = 0;

export function drop(id: number): void {
  notes.set(notes.value.filter((note) => note.id !== id));
}

/** Shows a note. The longer its text, the longer it stays on screen. */
export function say(text: string, kind: Note['kind'] = 'note', url?: string): void {
  const id = ++count;
  notes.set([...notes.value.slice(-3), { id, text, kind, url }]);
  if (kind === 'note') setTimeout(() => drop(id), 2_500 + text.length * 40);
}
