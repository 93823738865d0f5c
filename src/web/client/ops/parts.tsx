/**
 * Defines small parts of the operators' page: tiles with a chart, tables whose rows keep their order, meters, dialogs.
 */
import { type ReactNode, useEffect, useId, useRef, useState } from 'react';

/** Draws the values of the last minutes as a line chart. */
export function Line({ values }: { values: readonly number[] }) {
  const top = Math.max(...values, 1e-9);
  const points = values.map(
    (value, i) => `${(i / Math.max(values.length - 1, 1)) * 100},${29 - (value / top) * 27}`,
  );
  return (
    <svg className="line" viewBox="0 0 100 30" preserveAspectRatio="none" aria-hidden="true">
      {values.length > 1 && (
        <>
          <polygon points={`0,30 ${points.join(' ')} 100,30`} />
          <polyline points={points.join(' ')} />
        </>
      )}
    </svg>
  );
}

interface TileProps {
  name: string;
  value: string;
  unit?: string;
  bad?: boolean;
  values: readonly number[];
  children?: ReactNode;
}

export function Tile({ name, value, unit, bad, values, children }: TileProps) {
  return (
    <div className={bad ? 'tile bad-tile' : 'tile'}>
      <dt>{name}</dt>
      <dd>
        <strong>
          {value}
          {unit && <span className="unit"> {unit}</span>}
        </strong>
        <small>{children}</small>
        <Line values={values} />
      </dd>
    </div>
  );
}

export interface Column<T> {
  name: string;
  /** Returns the value of a row by which the rows are sorted. A column without `by` cannot be sorted. */
  by?: (row: T) => number | string;
  show: (row: T) => ReactNode;
  number?: boolean;
  /** Whether the column is hidden on narrow screens. */
  wide?: boolean;
}

interface TableProps<T> {
  label: string;
  rows: readonly T[];
  id: (row: T) => string | number;
  columns: ReadonlyArray<Column<T>>;
  /** The name of the column by which rows are sorted at first, with the greatest value on top. */
  first?: string;
  empty: string;
}

function sorted<T>(rows: readonly T[], by: (row: T) => number | string): T[] {
  return [...rows].sort((a, b) => {
    const [x, y] = [by(a), by(b)];
    return typeof x === 'number' && typeof y === 'number' ? y - x : String(x).localeCompare(String(y));
  });
}

/**
 * Shows a table whose rows keep their order while figures change. Sorts the rows again only when a new row appears or a
 * column header is pressed.
 */
export function Table<T>({ label, rows, id, columns, first, empty }: TableProps<T>) {
  // The state is an object, because React ignores a state change to an equal string. A second press of a header must
  // sort the rows again.
  const [{ by }, setBy] = useState({ by: first ?? '' });
  const order = useRef<Array<string | number>>([]);
  const rank = (name: string) => {
    const read = columns.find((column) => column.name === name)?.by;
    order.current = (read ? sorted(rows, read) : rows).map(id);
  };
  const present = new Map(rows.map((row) => [id(row), row]));
  order.current = order.current.filter((one) => present.has(one));
  // If there is a new row, sorts all rows, because the new row moves the others anyway.
  if (order.current.length < present.size) rank(by);
  const cell = ({ number, wide }: Column<T>) => `${number ? 'number' : ''} ${wide ? 'wide' : ''}`;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: hidden columns are scrolled into view by the keyboard too
    <section className="scroll" aria-label={`${label}, table`} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th
                key={column.name}
                scope="col"
                className={cell(column)}
                aria-sort={by === column.name ? (column.number ? 'descending' : 'ascending') : undefined}
              >
                {column.by ? (
                  <button
                    type="button"
                    onClick={() => {
                      rank(column.name);
                      setBy({ by: column.name });
                    }}
                  >
                    {column.name}
                  </button>
                ) : (
                  column.name
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {order.current.map((one) => {
            const row = present.get(one) as T;
            return (
              <tr key={one}>
                {columns.map((column, i) =>
                  i === 0 ? (
                    <th key={column.name} scope="row" className={cell(column)}>
                      {column.show(row)}
                    </th>
                  ) : (
                    <td key={column.name} className={cell(column)}>
                      {column.show(row)}
                    </td>
                  ),
                )}
              </tr>
            );
          })}
        </tbody>
      </table>
      {rows.length === 0 && <p className="nothing">{empty}</p>}
    </section>
  );
}

/** Shows a meter of how much of a resource is in use. */
export function Meter({ label, share, text }: { label: string; share: number; text: string }) {
  return (
    <div className="meter">
      <div className="meter-text">
        <span>{label}</span>
        <span>{text}</span>
      </div>
      <meter aria-label={label} max={1} high={0.8} value={Math.min(1, Math.max(0, share))}>
        {text}
      </meter>
    </div>
  );
}

export function Section({
  title,
  aside,
  children,
}: {
  title: string;
  aside?: ReactNode;
  children: ReactNode;
}) {
  const id = useId();
  return (
    <section className="card stack" aria-labelledby={id}>
      <header className="row wrap">
        <h2 id={id} className="grow">
          {title}
        </h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

interface ConfirmedProps {
  label: string;
  question: string;
  yes: string;
  busy: boolean;
  /** Whether the action removes something. The buttons then have the colour of a warning. */
  danger?: boolean;
  act: () => void;
}

/**
 * Shows a button that asks for a confirmation before it acts. The keyboard focus moves between the button and the
 * buttons of the confirmation.
 */
export function Confirmed({ label, question, yes, busy, danger, act }: ConfirmedProps) {
  const [asking, setAsking] = useState<boolean | null>(null);
  const first = useRef<HTMLButtonElement>(null);
  // Moves the focus only after a button was pressed, not when the component is first shown.
  useEffect(() => {
    if (asking !== null) first.current?.focus();
  }, [asking]);
  const kind = danger ? 'button danger' : 'button primary';
  if (!asking)
    return (
      <div className="row wrap">
        {/* A disabled button would lose the focus, so it is only marked as disabled. */}
        <button
          ref={first}
          type="button"
          className={kind}
          aria-disabled={busy}
          onClick={() => !busy && setAsking(true)}
        >
          {label}
        </button>
      </div>
    );
  return (
    <div className="row wrap">
      <span className="grow">{question}</span>
      <button
        type="button"
        className={kind}
        disabled={busy}
        onClick={() => {
          setAsking(false);
          act();
        }}
      >
        {yes}
      </button>
      <button ref={first} type="button" className="button" onClick={() => setAsking(false)}>
        Cancel
      </button>
    </div>
  );
}

/** Shows the error of a call, or nothing if there is no error. */
export const Failure = ({ text }: { text: string }) =>
  text === '' ? null : (
    <p className="failure" role="alert">
      {text}
    </p>
  );

export function Dialog({
  title,
  close,
  children,
}: {
  title: string;
  close: () => void;
  children: ReactNode;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    if (!ref.current?.open) ref.current?.showModal();
  }, []);
  return (
    <dialog ref={ref} className="dialog wide" aria-labelledby={id} onClose={close}>
      <div className="dialog-body">
        <header>
          <h2 id={id}>{title}</h2>
          <button type="button" className="button" onClick={close}>
            Close
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
