/** Draws the icons of buttons, as strokes on a grid of 24 by 24. */
const paths = {
  archive: 'M4 5h16v4H4zM5.500 9v10h13V9M10 13h4',
  back: 'M15 5l-7 7 7 7',
  next: 'M9 5l7 7-7 7',
  send: 'M4 12l16-8-5 16-4-6-7-2z',
  clip: 'M20 11l-8.5 8.5a5 5 0 01-7-7L13 4a3.4 3.4 0 015 5l-8.5 8.5a1.7 1.7 0 01-2.5-2.5L14.5 7.500',
  smile: 'M12 21a9 9 0 100-18 9 9 0 000 18zM8.500 14.500a4.500 4.500 0 007 0M9 9.500v.01M15 9.500v.01',
  more: 'M5 12h.01M12 12h.01M19 12h.01',
  plus: 'M12 5v14M5 12h14',
  minus: 'M5 12h14',
  download: 'M12 4v11M7 10.500l5 5 5-5M5 20h14',
  close: 'M6 6l12 12M18 6L6 18',
  check: 'M5 12.500l4.500 4.500L19 7',
  clock: 'M12 21a9 9 0 100-18 9 9 0 000 18zM12 7v5l3 2',
  unarchive: 'M4 5h16v4H4zM5.500 9v10h13V9M12 17v-5M9.500 14l2.500-2.500 2.500 2.500',
  pin: 'M9 4h6l-.7 6 3.200 3.500h-11L9.700 10 9 4zM12 13.500V21',
  unpin: 'M9 4h6l-.7 6 3.200 3.500h-11L9.700 10 9 4zM12 13.500V21M4 4l16 17',
  reply: 'M10 7L5 12l5 5M5 12h9a5 5 0 015 5v1',
  forward: 'M14 7l5 5-5 5M19 12h-9a5 5 0 00-5 5v1',
  edit: 'M4 20l1-4L16 5l3 3L8 19l-4 1z',
  trash: 'M5 7h14M10 7V5h4v2M7 7l1 13h8l1-13',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  lock: 'M6 11h12v9H6zM8.500 11V8a3.500 3.500 0 017 0v3',
  search: 'M11 18a7 7 0 100-14 7 7 0 000 14zM16 16l4 4',
  bot: 'M6 9h12v9H6zM12 9V5M12 4.500v.01M9.500 13v.01M14.500 13v.01M3.500 12v3M20.500 12v3',
  gear: 'M12 15a3 3 0 100-6 3 3 0 000 6zM12 3v3M12 18v3M3 12h3M18 12h3M5.600 5.600l2.100 2.100M16.300 16.300l2.100 2.100M5.600 18.400l2.100-2.100M16.300 7.700l2.100-2.100',
  down: 'M6 9l6 6 6-6',
  file: 'M7 3h7l4 4v14H7zM14 3v4h4',
  play: 'M8 5l11 7-11 7z',
  link: 'M10 14a4 4 0 006 0l3-3a4 4 0 00-6-6l-1 1M14 10a4 4 0 00-6 0l-3 3a4 4 0 006 6l1-1',
  people:
    'M9 11a3.500 3.500 0 100-7 3.500 3.500 0 000 7zM2.500 20a6.500 6.500 0 0113 0M16 4.500a3.500 3.500 0 010 6.500M18 14.500a6.500 6.500 0 013.500 5.500',
  channel: 'M4 10v4h3l8 4V6l-8 4H4zM18.500 9a4 4 0 010 6',
  chat: 'M4 5h16v11H9l-5 4V5z',
  slash: 'M15 5L9 19',
  photo: 'M4 5h16v14H4zM8.500 10.500v.01M4 16l5-4 4 3 3-2 4 3',
  refresh: 'M19 8a8 8 0 10.800 6M19 4v4h-4',
  eye: 'M2.500 12S6 5.500 12 5.500 21.500 12 21.500 12 18 18.500 12 18.500 2.500 12 2.500 12zM12 14.500a2.500 2.500 0 100-5 2.500 2.500 0 000 5z',
  bell: 'M6 16V11a6 6 0 0112 0v5l1.500 2h-15zM10 20.500h4',
  bell_off: 'M6 16V11a6 6 0 0112 0v5l1.500 2h-15zM10 20.500h4M4 4l16 17',
  out: 'M14 4H5v16h9M10 12h10M17 8.500l3.500 3.500-3.500 3.500',
  map: 'M12 21s-6.500-6-6.500-11a6.500 6.500 0 0113 0c0 5-6.500 11-6.500 11zM12 12.500a2.500 2.500 0 100-5 2.500 2.500 0 000 5z',
  mic: 'M12 3a3 3 0 013 3v5a3 3 0 01-6 0V6a3 3 0 013-3zM6 11a6 6 0 0012 0M12 17v4',
  keyboard: 'M3 6h18v12H3zM7 10v.01M10.500 10v.01M14 10v.01M17 10v.01M8 14h8',
  info: 'M12 21a9 9 0 100-18 9 9 0 000 18zM12 11v5M12 8v.01',
  stop: 'M7 7h10v10H7z',
  bold: 'M8 5h5a3.500 3.500 0 010 7H8zM8 12h6a3.500 3.500 0 010 7H8z',
  italic: 'M10 5h7M7 19h7M13.500 5l-3 14',
  underline: 'M7 4v7a5 5 0 0010 0V4M6 20h12',
  strikethrough:
    'M5 12h14M16 8c-.4-1.800-1.900-3-4-3-2.400 0-4 1.300-4 3 0 .9.400 1.600 1 2.200M8 16c.4 1.800 1.900 3 4 3 2.400 0 4-1.300 4-3 0-.6-.1-1-.3-1.400',
  spoiler: 'M2.500 12S6 5.500 12 5.500 21.500 12 21.500 12 18 18.500 12 18.500 2.500 12 2.500 12zM5 4l14 16',
  code: 'M8 7l-5 5 5 5M16 7l5 5-5 5',
  pre: 'M9 4.500H8a2 2 0 00-2 2V10l-2 2 2 2v3.500a2 2 0 002 2h1M15 4.500h1a2 2 0 012 2V10l2 2-2 2v3.500a2 2 0 01-2 2h-1',
  quote: 'M5 5v14M10 8h9M10 12h9M10 16h6',
  warn: 'M12 4l9 16H3zM12 10v4M12 17v.01',
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, size = 22 }: { name: IconName; size?: number }) {
  return (
    <svg
      className="icon"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={name === 'more' ? 3 : 1.8}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={paths[name]} />
    </svg>
  );
}
