/** Formats the text in the composer (decision 0080). */
import { type KeyboardEvent, type RefObject, useEffect, useState } from 'react';
import { attempt } from '../failures.js';
import { type Format, formatOfKey } from '../model/format_keys.js';
import type { Change } from '../model/formats.js';

export type FieldRef = RefObject<HTMLTextAreaElement | null>;

/**
 * Changes the text of a field. The browser itself inserts the text, so that the person can undo the change, and so that
 * the field reports the change in the same way as typed text.
 */
export function changeField(area: HTMLTextAreaElement, { from, to, insert, selection }: Change): void {
  area.focus();
  area.setSelectionRange(from, to);
  const isDone =
    insert === '' ? document.execCommand('delete') : document.execCommand('insertText', false, insert);
  if (!isDone) {
    area.setRangeText(insert, from, to, 'end');
    area.dispatchEvent(new Event('input', { bubbles: true }));
  }
  area.setSelectionRange(...selection);
}

/** Returns the selection in the field, and functions that format the selected text. */
export function useFormatting(field: FieldRef) {
  const [[from, to], select] = useState<readonly [number, number]>([0, 0]);
  const format = (wanted: Format) =>
    attempt(async () => {
      const { formatChange } = await import('../model/formats.js');
      const area = field.current;
      if (!area) return;
      changeField(area, formatChange(wanted, area.value, area.selectionStart, area.selectionEnd));
    });
  /**
   * Formats the selected text if the key stands for a format. Returns whether it has done so. Ctrl+K adds a link only
   * if text is selected. Otherwise it opens the dialog for choosing a chat.
   */
  const onKey = (event: KeyboardEvent): boolean => {
    const wanted = formatOfKey(event);
    if (!wanted || (wanted === 'link' && from === to)) return false;
    void format(wanted);
    return true;
  };
  const onSelect = () => {
    const area = field.current;
    if (!area) return;
    const { selectionStart, selectionEnd } = area;
    select((former) =>
      former[0] === selectionStart && former[1] === selectionEnd ? former : [selectionStart, selectionEnd],
    );
  };
  // React does not report every change of the selection, for instance by the handles on a touch screen.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the field stays the same
  useEffect(() => {
    const onChange = () => {
      if (document.activeElement === field.current) onSelect();
    };
    document.addEventListener('selectionchange', onChange);
    return () => document.removeEventListener('selectionchange', onChange);
  }, []);
  return { from, to, format, onKey, onSelect, close: () => select([to, to]) };
}
