/** Lists the formats of the composer and the keys that apply them. */

export const formats = [
  ...(['bold', 'italic', 'underline', 'strikethrough', 'spoiler'] as const),
  ...(['code', 'pre', 'quote', 'link'] as const),
] as const;
export type Format = (typeof formats)[number];

/** The keys that apply a format, together with Ctrl or ⌘. */
export const formatKeys: Readonly<Record<Format, string>> = {
  bold: 'B',
  italic: 'I',
  underline: 'U',
  strikethrough: 'Shift+X',
  spoiler: 'Shift+H',
  code: 'Shift+M',
  pre: 'Shift+E',
  quote: 'Shift+.',
  link: 'K',
};

export interface PressedKey {
  readonly key: string;
  readonly code: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly shiftKey: boolean;
  readonly altKey: boolean;
}

/**
 * Returns the format that a pressed key applies. If the keyboard layout has no Latin letter on this key, uses the key's
 * position.
 */
export function formatOfKey({
  key,
  code,
  ctrlKey,
  metaKey,
  shiftKey,
  altKey,
}: PressedKey): Format | undefined {
  if (ctrlKey === metaKey || altKey) return undefined;
  const isStop = key === '.' || key === '>' || code === 'Period';
  const sign = /^[a-z]$/i.test(key) ? key.toUpperCase() : isStop ? '.' : code.replace(/^Key/, '');
  const pressed = shiftKey ? `Shift+${sign}` : sign;
  return formats.find((format) => formatKeys[format] === pressed);
}
