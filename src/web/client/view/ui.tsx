/** Defines small parts that all pages use: buttons, dialogs, menus, avatars. */
import {
  Component,
  type CSSProperties,
  type KeyboardEvent,
  type MouseEvent,
  type PointerEvent,
  type ReactNode,
  Suspense,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from 'react';
import { fileUrl } from '../api.js';
import type { Picture } from '../types.js';
import { t } from '../words.js';
import { Icon, type IconName } from './icons.js';

interface IconButtonProps {
  icon: IconName;
  label: string;
  onClick?: (event: MouseEvent<HTMLButtonElement>) => void;
  disabled?: boolean;
  className?: string;
  expanded?: boolean;
  submit?: boolean;
}

export function IconButton({
  icon,
  label,
  onClick,
  disabled,
  className = '',
  expanded,
  submit,
}: IconButtonProps) {
  return (
    <button
      type={submit ? 'submit' : 'button'}
      className={`icon-button ${className}`}
      aria-label={label}
      title={label}
      aria-expanded={expanded}
      disabled={disabled}
      onClick={onClick}
    >
      <Icon name={icon} />
    </button>
  );
}

const long_press_ms = 500;
const move_px_max = 10;

/**
 * Returns handlers that call `act` on a long press, for browsers whose long press does not cause a `contextmenu` event.
 */
export function useLongPress(act: (at: { x: number; y: number }) => void) {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const from = useRef({ x: 0, y: 0 });
  const end = () => clearTimeout(timer.current);
  useEffect(() => () => clearTimeout(timer.current), []);
  return {
    onPointerDown({ pointerType, clientX: x, clientY: y }: PointerEvent) {
      end();
      from.current = { x, y };
      if (pointerType === 'touch') timer.current = setTimeout(() => act({ x, y }), long_press_ms);
    },
    onPointerMove({ clientX, clientY }: PointerEvent) {
      if (Math.hypot(clientX - from.current.x, clientY - from.current.y) > move_px_max) end();
    },
    onPointerUp: end,
    onPointerCancel: end,
  };
}

export function Spinner({ label }: { label?: string }) {
  return (
    <span className="spinner" role="status">
      <span className="sr-only">{label ?? t('loading')}</span>
    </span>
  );
}

/**
 * Shows a placeholder for an empty list. It says what the list will contain, and can contain a link to create the first
 * item.
 */
export function Empty({ icon, text, children }: { icon: IconName; text: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <span className="empty-icon">
        <Icon name={icon} size={34} />
      </span>
      <p>{text}</p>
      {children}
    </div>
  );
}

/** Shows an error, with a button to try again. */
export function Trouble({ text, retry }: { text: string; retry?: () => void }) {
  return (
    <div className="trouble" role="alert">
      <p>{text}</p>
      {retry && (
        <button type="button" className="button" onClick={retry}>
          {t('retry')}
        </button>
      )}
    </div>
  );
}

interface PartProps {
  /** The content to show while the code is loading. */
  waiting?: ReactNode;
  children: ReactNode;
}

/**
 * Shows a part of the application whose code is loaded when the part is opened. If loading fails, shows a button that
 * loads the page again, because the browser remembers a failed import.
 */
export class Part extends Component<PartProps, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override render() {
    const { waiting = null, children } = this.props;
    if (this.state.hasFailed) return <Trouble text={t('part_not_loaded')} retry={() => location.reload()} />;
    return <Suspense fallback={waiting}>{children}</Suspense>;
  }
}

/** Returns the URL of a stored picture for an <img>, or '' while the picture is loading. */
export function useFile(path: string | undefined): { url: string; failed: boolean } {
  const [state, setState] = useState({ path: '', url: '', failed: false });
  useEffect(() => {
    if (!path) return;
    let here = true;
    fileUrl(path).then(
      (url) => here && setState({ path, url, failed: false }),
      () => here && setState({ path, url: '', failed: true }),
    );
    return () => {
      here = false;
    };
  }, [path]);
  return state.path === path ? state : { url: '', failed: false };
}

const hues = [205, 168, 262, 24, 338, 140, 46, 290];

const segmenter = new Intl.Segmenter();
const firstLetter = (word: string) => [...segmenter.segment(word)][0]?.segment ?? '';
function initials(name: string): string {
  const [first = '', second = ''] = name.trim().split(/\s+/);
  return `${firstLetter(first)}${firstLetter(second)}`.toLocaleUpperCase();
}

interface FaceProps {
  id: number;
  name: string;
  picture?: Picture;
  size?: number;
}

/** Shows an avatar. If there is no picture, shows the initials on a colour that depends on the id. */
export function Face({ id, name, picture, size = 48 }: FaceProps) {
  const { url } = useFile((size <= 64 ? picture?.small?.url : undefined) ?? picture?.url);
  const style = {
    '--hue': hues[Math.abs(id) % hues.length],
    width: size,
    height: size,
    fontSize: size * 0.38,
  } as CSSProperties;
  return (
    <span className="face" style={style} aria-hidden="true">
      {url ? <img src={url} alt="" /> : initials(name)}
    </span>
  );
}

interface DialogProps {
  title: string;
  close: () => void;
  children: ReactNode;
  wide?: boolean;
}

export function Dialog({ title, close, children, wide }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = ref.current;
    if (!dialog || dialog.open) return;
    dialog.showModal();
    // Focuses the first text field. If the dialog has no text field, focuses the dialog, because the browser would
    // otherwise focus the close button.
    const field = dialog.querySelector<HTMLElement>('input:not([type]), input[type="text"], textarea');
    (field ?? dialog).focus();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes a dialog natively
    <dialog
      ref={ref}
      tabIndex={-1}
      className={wide ? 'dialog wide' : 'dialog'}
      aria-labelledby={id}
      onClose={close}
      onClick={(event) => {
        if (event.target === ref.current) close();
      }}
    >
      <div className="dialog-body">
        <div className="dialog-head">
          <h2 id={id}>{title}</h2>
          <IconButton icon="close" label={t('close')} onClick={close} />
        </div>
        {children}
      </div>
    </dialog>
  );
}

/** Returns whether a dialog or menu covers the page. */
export const isCovered = (): boolean => document.querySelector('dialog[open], .menu') !== null;

/** Shows why an action failed, or nothing if the text is ''. */
export function Failure({ text }: { text: string }) {
  if (text === '') return null;
  return (
    <p className="failure" role="alert">
      {text}
    </p>
  );
}

interface ConfirmProps {
  title: string;
  text: string;
  action: string;
  danger?: boolean;
  act: () => void;
  close: () => void;
}

export function Confirm({ title, text, action, danger, act, close }: ConfirmProps) {
  return (
    <Dialog title={title} close={close}>
      <p>{text}</p>
      <div className="row end dialog-foot">
        <button type="button" className="button" onClick={close}>
          {t('cancel')}
        </button>
        <button
          type="button"
          className={danger ? 'button danger' : 'button primary'}
          onClick={() => {
            close();
            act();
          }}
        >
          {action}
        </button>
      </div>
    </Dialog>
  );
}

export interface MenuItem {
  icon: IconName;
  label: string;
  act: () => void;
  danger?: boolean;
}

interface MenuProps {
  at: { x: number; y: number };
  label: string;
  items: readonly MenuItem[];
  close: () => void;
}

/**
 * Shows a menu at a position in the window. The arrow keys move between its items, and Escape closes it. When the menu
 * closes, the focus returns to the element that had it before.
 */
export function Menu({ at, label, items, close }: MenuProps) {
  const ref = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ left: at.x, top: at.y });
  useLayoutEffect(() => {
    const menu = ref.current;
    if (!menu) return;
    const { width, height } = menu.getBoundingClientRect();
    setPlace({
      left: Math.max(8, Math.min(at.x, innerWidth - width - 8)),
      top: Math.max(8, Math.min(at.y, innerHeight - height - 8)),
    });
    const before = document.activeElement;
    menu.querySelector('button')?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    };
  }, [at.x, at.y]);
  const onKey = (event: KeyboardEvent) => {
    const buttons = [...(ref.current?.querySelectorAll('button') ?? [])];
    const index = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) buttons[(index + step + buttons.length) % buttons.length]?.focus();
    else if (event.key === 'Home') buttons[0]?.focus();
    else if (event.key === 'End') buttons.at(-1)?.focus();
    else if (event.key === 'Escape' || event.key === 'Tab') close();
    else return;
    event.preventDefault();
  };
  return (
    <>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes the menu too */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: catches clicks outside of the menu */}
      <div
        className="backdrop"
        onClick={close}
        onContextMenu={(event) => {
          event.preventDefault();
          close();
        }}
      />
      <div
        className="menu"
        role="menu"
        aria-label={label}
        tabIndex={-1}
        ref={ref}
        style={place}
        onKeyDown={onKey}
      >
        {items.map((item) => (
          <button
            key={item.label}
            type="button"
            role="menuitem"
            className={item.danger ? 'danger' : ''}
            onClick={() => {
              close();
              item.act();
            }}
          >
            <Icon name={item.icon} size={20} />
            {item.label}
          </button>
        ))}
      </div>
    </>
  );
}

interface FieldProps {
  label: string;
  value: string;
  set: (value: string) => void;
  max?: number;
  multiline?: boolean;
  hint?: string;
  placeholder?: string;
  type?: string;
  required?: boolean;
  autoFocus?: boolean;
}

export const lengthOf = (text: string): number => [...text].length;

/** Shows a field with a label. If `max` is given, also shows how many characters are left. */
export function Field({ label, value, set, max, multiline, hint, ...rest }: FieldProps) {
  const id = useId();
  const left = max === undefined ? 0 : max - lengthOf(value);
  const shared = {
    id,
    value,
    onChange: (event: { target: { value: string } }) => set(event.target.value),
    'aria-describedby': `${id}-hint`,
    'aria-invalid': left < 0,
    ...rest,
  };
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {multiline ? <textarea rows={3} {...shared} /> : <input autoComplete="off" {...shared} />}
      <div className="hint" id={`${id}-hint`}>
        <span>{hint}</span>
        {max !== undefined && (
          <span className={left < 0 ? 'over' : ''}>{t('characters_left', { n: left })}</span>
        )}
      </div>
    </div>
  );
}
