/** Shows the pictures and videos of a chat one at a time, over the whole window. */
import {
  type KeyboardEvent,
  type PointerEvent,
  type RefObject,
  useCallback,
  useEffect,
  useRef,
  useState,
} from 'react';
import { t } from '../words.js';
import type { AlbumItem } from './album.js';
import { hostOf, isSafe, type Medium, save, trusted } from './media.js';
import { RichText } from './text.js';
import { IconButton, Spinner, useFile } from './ui.js';

interface Point {
  readonly x: number;
  readonly y: number;
}

/** The scale of a picture, and how far its centre is from the centre of the viewer's picture area, in pixels. */
interface View extends Point {
  readonly scale: number;
}

const whole: View = { scale: 1, x: 0, y: 0 };
const scale_max = 8;
const press_factor = 1.5;
const double_factor = 2.5;
const double_ms = 300;
const tap_px_max = 10;
const swipe_px_min = 60;
/** The height of the controls at the lower edge of a video, in pixels. */
const controls_px = 80;

const clamp = (value: number, most: number) => Math.min(Math.max(value, -most), most);

/**
 * Limits how far a picture can be moved. A picture that is larger than the viewer's picture area (`stage`) always
 * covers the whole area.
 */
function within({ scale, x, y }: View, stage: HTMLElement | null): View {
  const picture = stage?.querySelector('img');
  if (!stage || !picture || scale === 1) return whole;
  const spare = (own: number, shown: number) => Math.max(0, (own * scale - shown) / 2);
  return {
    scale,
    x: clamp(x, spare(picture.offsetWidth, stage.clientWidth)),
    y: clamp(y, spare(picture.offsetHeight, stage.clientHeight)),
  };
}

function useZoom(stage: RefObject<HTMLElement | null>) {
  const [view, setView] = useState(whole);
  /**
   * Changes the scale of the picture around the given position in the window, or around the centre if none is given.
   */
  const zoom = useCallback(
    (factor: number, at?: Point) =>
      setView((former) => {
        const box = stage.current?.getBoundingClientRect();
        if (!box) return former;
        const scale = Math.min(scale_max, Math.max(1, former.scale * factor));
        const grown = scale / former.scale;
        const x = at ? at.x - box.left - box.width / 2 : 0;
        const y = at ? at.y - box.top - box.height / 2 : 0;
        return within({ scale, x: x - (x - former.x) * grown, y: y - (y - former.y) * grown }, stage.current);
      }),
    [stage],
  );
  const move = (dx: number, dy: number) =>
    setView((former) => within({ ...former, x: former.x + dx, y: former.y + dy }, stage.current));
  useEffect(() => {
    const box = stage.current;
    const onWheel = (event: WheelEvent) => {
      // Prevents a pinch on a touchpad from enlarging the whole page.
      event.preventDefault();
      zoom(Math.exp(-event.deltaY / 400), { x: event.clientX, y: event.clientY });
    };
    box?.addEventListener('wheel', onWheel, { passive: false });
    return () => box?.removeEventListener('wheel', onWheel);
  }, [stage, zoom]);
  return { view, zoom, move, reset: () => setView(whole) };
}

/** Returns whether the pointer is on a button or on the controls of a video. The viewer then ignores gestures. */
const isControl = (target: Element, y: number): boolean =>
  target.closest('button') !== null ||
  (target instanceof HTMLVideoElement && y > target.getBoundingClientRect().bottom - controls_px);

const distance = (one: Point, other: Point) => Math.hypot(one.x - other.x, one.y - other.y);

interface GestureOptions {
  readonly scale: number;
  readonly zoom: (factor: number, at?: Point) => void;
  readonly move: (dx: number, dy: number) => void;
  /** Shows another picture or video: 1 for the next, -1 for the previous. */
  readonly step: (by: number) => void;
  readonly close: () => void;
}

/**
 * Returns the handlers for gestures. A double tap or a pinch changes the scale, a drag moves an enlarged picture, a
 * swipe goes to another item, and a tap beside the picture closes the viewer.
 */
function useGestures({ scale, zoom, move, step, close }: GestureOptions) {
  const points = useRef(new Map<number, Point>());
  const from = useRef({ x: 0, y: 0, isTap: false, isBeside: false, isSingle: true });
  const lastTap = useRef({ x: 0, y: 0, at: 0 });
  const onTap = (at: Point, time: number) => {
    const last = lastTap.current;
    const isDouble = time - last.at < double_ms && distance(at, last) < 3 * tap_px_max;
    lastTap.current = { ...at, at: isDouble ? 0 : time };
    if (isDouble) zoom(scale > 1 ? 0 : double_factor, at);
  };
  const onEnd = ({ pointerId, clientX: x, clientY: y, timeStamp, type }: PointerEvent) => {
    if (!points.current.delete(pointerId) || points.current.size > 0 || type === 'pointercancel') return;
    const { isTap, isBeside, isSingle, ...start } = from.current;
    const [dx, dy] = [x - start.x, y - start.y];
    if (isTap && isBeside) close();
    else if (isTap) onTap({ x, y }, timeStamp);
    else if (isSingle && scale === 1 && Math.abs(dx) > Math.max(swipe_px_min, 2 * Math.abs(dy)))
      step(dx < 0 ? 1 : -1);
  };
  return {
    onPointerDown({ target, currentTarget, pointerId, clientX: x, clientY: y }: PointerEvent<HTMLElement>) {
      if (isControl(target as Element, y)) return;
      // Does not capture the pointer on a video, because the video handles clicks itself.
      if (!(target instanceof HTMLVideoElement)) currentTarget.setPointerCapture(pointerId);
      points.current.set(pointerId, { x, y });
      const isSingle = points.current.size === 1;
      from.current = { x, y, isTap: isSingle, isBeside: target === currentTarget, isSingle };
    },
    onPointerMove({ pointerId, clientX: x, clientY: y }: PointerEvent) {
      const before = points.current.get(pointerId);
      if (!before) return;
      const now = { x, y };
      points.current.set(pointerId, now);
      if (distance(now, from.current) > tap_px_max) from.current.isTap = false;
      const other = [...points.current].find(([id]) => id !== pointerId)?.[1];
      if (other)
        zoom(distance(now, other) / Math.max(1, distance(before, other)), {
          x: (x + other.x) / 2,
          y: (y + other.y) / 2,
        });
      else if (scale > 1) move(x - before.x, y - before.y);
    },
    onPointerUp: onEnd,
    onPointerCancel: onEnd,
  };
}

function Shown({ medium: { kind, file }, alt, view }: { medium: Medium; alt: string; view: View }) {
  const stored = useFile(file.url === undefined ? `/api/files/${file.file_id}` : undefined);
  const [broken, setBroken] = useState(false);
  const url = file.url ?? stored.url;
  if (stored.failed || broken) return <p>{t('media_unavailable')}</p>;
  if (url === '') return <Spinner />;
  const { scale, x, y } = view;
  return kind === 'photo' ? (
    <img
      src={url}
      alt={alt}
      draggable={false}
      referrerPolicy="no-referrer"
      style={{ transform: `translate(${x}px, ${y}px) scale(${scale})` }}
      onError={() => setBroken(true)}
    />
  ) : (
    // biome-ignore lint/a11y/useMediaCaption: media from people has no captions
    <video src={url} controls autoPlay playsInline aria-label={alt} onError={() => setBroken(true)} />
  );
}

/**
 * Returns whether the viewer shows an item. Leaves out hidden media, and media from hosts that the person has not
 * agreed to.
 */
const isShown = ({ medium: { kind, file, spoiler } }: AlbumItem): boolean =>
  (kind === 'photo' || kind === 'video') &&
  !spoiler &&
  (file.url === undefined || (isSafe(file.url) && trusted.value.has(hostOf(file.url))));

interface ViewerProps {
  /** The loaded media of the chat, oldest first. */
  items: readonly AlbumItem[];
  first: AlbumItem;
  close: () => void;
}

interface BarProps {
  item: AlbumItem;
  place: string;
  /** Changes the scale of the picture. Undefined if a video is shown. */
  zoom: ((factor: number) => void) | undefined;
  scale: number;
  close: () => void;
}

function Bar({ item, place, zoom, scale, close }: BarProps) {
  const { kind, file } = item.medium;
  return (
    <header>
      <p aria-live="polite">{place}</p>
      {zoom && (
        <>
          <IconButton
            icon="minus"
            label={t('zoom_out')}
            disabled={scale <= 1}
            onClick={() => zoom(1 / press_factor)}
          />
          <IconButton
            icon="plus"
            label={t('zoom_in')}
            disabled={scale >= scale_max}
            onClick={() => zoom(press_factor)}
          />
        </>
      )}
      <IconButton icon="download" label={t('download')} onClick={() => void save(file, t(`media_${kind}`))} />
      <IconButton icon="close" label={t('close')} onClick={close} />
    </header>
  );
}

/** Returns what a key does, or undefined if the viewer does not use the key. */
function actionOf(
  { key, target }: KeyboardEvent,
  { step, zoom }: { step: (by: number) => void; zoom: ((factor: number) => void) | undefined },
): (() => void) | undefined {
  // While a video has the focus, the arrow keys change the position in the video.
  const by = target instanceof HTMLVideoElement ? undefined : { ArrowRight: 1, ArrowLeft: -1 }[key];
  if (by) return () => step(by);
  const factor = { '+': press_factor, '=': press_factor, '-': 1 / press_factor, '0': 0 }[key];
  return factor === undefined || !zoom ? undefined : () => zoom(factor);
}

export default function Viewer({ items, first, close }: ViewerProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const stage = useRef<HTMLDivElement>(null);
  const [list] = useState(() => items.filter((item) => item.id === first.id || isShown(item)));
  const [at, setAt] = useState(() => list.findIndex(({ id }) => id === first.id));
  const { view, zoom, move, reset } = useZoom(stage);
  useEffect(() => {
    if (dialog.current?.open) return;
    dialog.current?.showModal();
    dialog.current?.focus();
  }, []);
  // When the dialog closes, the browser returns the focus to the element that had it before.
  const end = () => dialog.current?.close();
  const step = (by: number) => {
    const next = at + by;
    if (!list[next]) return;
    setAt(next);
    reset();
    // At the first and the last item, the pressed button is disabled and loses the focus. Moves the focus to the
    // dialog.
    if (!list[next + by]) dialog.current?.focus();
  };
  const item = list[at] ?? first;
  const { caption, medium } = item;
  const zoomed = medium.kind === 'photo' ? zoom : undefined;
  const gestures = useGestures({ scale: view.scale, zoom: zoomed ?? (() => {}), move, step, close: end });
  const onKey = (event: KeyboardEvent) => {
    const act =
      event.ctrlKey || event.metaKey || event.altKey ? undefined : actionOf(event, { step, zoom: zoomed });
    if (!act) return;
    event.preventDefault();
    act();
  };
  const name = t(`media_${medium.kind}`);
  return (
    <dialog ref={dialog} className="viewer" tabIndex={-1} aria-label={name} onClose={close} onKeyDown={onKey}>
      <Bar item={item} place={`${at + 1} / ${list.length}`} zoom={zoomed} scale={view.scale} close={end} />
      <div className={view.scale > 1 ? 'viewer-stage enlarged' : 'viewer-stage'} ref={stage} {...gestures}>
        <Shown key={item.id} medium={medium} alt={caption?.text ?? name} view={view} />
        <IconButton
          icon="back"
          label={t('previous')}
          className="viewer-step"
          disabled={at === 0}
          onClick={() => step(-1)}
        />
        <IconButton
          icon="next"
          label={t('next')}
          className="viewer-step"
          disabled={at === list.length - 1}
          onClick={() => step(1)}
        />
      </div>
      {caption && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a long caption is scrolled by the keyboard too
        <p className="viewer-caption text" dir="auto" tabIndex={0}>
          <RichText {...caption} />
        </p>
      )}
    </dialog>
  );
}
