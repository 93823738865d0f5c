/** Short notes at the foot of the window, and alerts that wait to be read. */
import { Cell } from './signal.js';

export interface Note {
  readonly id: number;
  readonly text: string;
  readonly kind: 'note' | 'alert';
  /** Opened when the person agrees. */
  readonly url?: string;
}

export const notes = new Cell<readonly Note[]>([]);
let count = 0;

export function drop(id: number): void {
  notes.set(notes.value.filter((note) => note.id !== id));
}

/** Notes are as long on screen as they take to read. */
export function say(text: string, kind: Note['kind'] = 'note', url?: string): void {
  const id = ++count;
  notes.set([...notes.value.slice(-3), { id, text, kind, url }]);
  if (kind === 'note') setTimeout(() => drop(id), 2_500 + text.length * 40);
}
